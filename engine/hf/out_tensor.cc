// Copies, slices, stacks and permutations of old tensors.
#include "engine/hf/out_tensor.h"

namespace engine {
namespace {

using RowMap = std::function<uint64_t(uint64_t)>;

// The old tensors as equal matrices; a vector is a matrix with one column.
struct Stack {
  std::vector<const SafeTensor*> from;
  uint64_t n = 1, rows = 1, cols = 1;
  bool is_vector = false, is_stack = false;

  template <class... Parts>
  void Require(bool holds, const Parts&... expected) const {
    if (!holds) from[0]->Fail("expected ", expected..., ", found ", ShapeText(from[0]->shape));
  }
  uint64_t elements() const { return rows * cols; }
  // The first element of matrix i.
  Unit Matrix(uint64_t i) const {
    return from.size() > 1 ? Unit{from[i], 0} : Unit{from[0], i * elements()};
  }
};

Stack AsStack(const std::vector<const SafeTensor*>& from) {
  Stack stack{.from = from};
  std::vector<uint64_t> shape = from[0]->shape;
  for (const SafeTensor* tensor : from) {
    if (tensor->shape != shape) {
      tensor->Fail("expected shape ", ShapeText(shape), " as its like, found ",
                   ShapeText(tensor->shape));
    }
  }
  while (shape.size() > 3 && shape[0] == 1) shape.erase(shape.begin());
  stack.Require(shape.size() <= 3 && from[0]->elements > 0, "1 to 3 dimensions, none of them 0");
  stack.is_vector = shape.size() <= 1;
  stack.is_stack = shape.size() == 3 || from.size() > 1;
  stack.Require(shape.size() < 3 || from.size() == 1, "a matrix");
  if (shape.size() == 3) stack.n = shape[0];
  if (from.size() > 1) stack.n = from.size();
  if (shape.size() >= 2) {
    stack.rows = shape[shape.size() - 2];
    stack.cols = shape.back();
  } else {
    stack.rows = from[0]->elements;
  }
  return stack;
}

// Matrices of n rows each; row r is the old row map(r).
OutTensor PickRows(const Stack& stack, uint64_t n, RowMap map) {
  OutTensor out;
  out.unit = stack.cols;
  if (!stack.is_vector) out.dims.push_back(stack.cols);
  out.dims.push_back(n);
  if (stack.is_stack) out.dims.push_back(stack.n);
  out.locate = [stack, n, map = std::move(map)](uint64_t row) {
    Unit unit = stack.Matrix(row / n);
    unit.first += map(row % n) * stack.cols;
    return unit;
  };
  return out;
}

OutTensor RowsFrom(const Stack& stack, uint64_t first, uint64_t n) {
  return PickRows(stack, n, [first](uint64_t row) { return first + row; });
}

OutTensor Same(const Stack& stack) { return RowsFrom(stack, 0, stack.rows); }

// Keeps the numbers and their order, with new dims.
OutTensor Reshaped(const Stack& stack, std::vector<uint64_t> dims) {
  OutTensor out;
  stack.Require(stack.from.size() == 1, "one tensor");
  out.unit = dims[0];
  out.dims = std::move(dims);
  out.locate = [stack, n = out.unit](uint64_t row) { return Unit{stack.from[0], row * n}; };
  return out;
}

OutTensor Rope(const Stack& stack, uint64_t n_heads, uint64_t n_rotated) {
  stack.Require(n_heads > 0 && stack.rows % (2 * n_heads) == 0, "rows for ", n_heads,
                " heads of an even length");
  const uint64_t length = stack.rows / n_heads;
  const uint64_t n = n_rotated != 0 ? n_rotated : length;
  stack.Require(n <= length && n % 2 == 0, "heads with ", n, " rows that rotate");
  return PickRows(stack, stack.rows, [length, n](uint64_t row) {
    const uint64_t at = row % length;
    return at < n ? row - at + at % 2 * (n / 2) + at / 2 : row;
  });
}

OutTensor EveryOther(const Stack& stack, bool odd) {
  const uint64_t of = stack.is_stack ? stack.rows : stack.cols;
  stack.Require(of % 2 == 0 && !stack.is_vector, "an even number of rows");
  if (stack.is_stack) {
    return PickRows(stack, of / 2, [odd](uint64_t row) { return 2 * row + (odd ? 1 : 0); });
  }
  OutTensor out;  // vectors, one for each expert
  out.dims = {of / 2, stack.rows};
  out.unit = of / 2;
  out.locate = [stack, odd](uint64_t row) {
    return Unit{stack.from[0], row * stack.cols + (odd ? 1 : 0), 2};
  };
  return out;
}

// Takes 1 / part of the rows, every step-th from `first` on, of matrices stored as [cols, rows].
OutTensor Transposed(const Stack& stack, uint64_t part, uint64_t first, uint64_t step) {
  stack.Require(!stack.is_vector && stack.cols % part == 0, "a matrix, or a stack of them");
  OutTensor out;
  const uint64_t n = stack.cols / part;
  out.dims = {stack.rows, n};
  if (stack.is_stack) out.dims.push_back(stack.n);
  out.unit = stack.rows;
  out.locate = [stack, first, step, n](uint64_t row) {
    Unit unit = stack.Matrix(row / n);
    unit.first += row % n * step + first;
    unit.stride = stack.cols;
    return unit;
  };
  return out;
}

// The keys' or the values' part of a matrix [heads * (plain + value), latent].
OutTensor LatentKeysOrValues(const Stack& stack, const Shapes& shapes, bool keys) {
  const uint64_t head = shapes.head_plain + shapes.head_value, latent = stack.cols;
  stack.Require(head > 0 && shapes.n_heads * head == stack.rows, shapes.n_heads, " heads of ", head,
                " rows");
  OutTensor out;
  if (keys) {  // one matrix of latent rows per head
    out.dims = {shapes.head_plain, latent, shapes.n_heads};
    out.unit = shapes.head_plain;
    out.locate = [stack, head, latent](uint64_t row) {
      return Unit{stack.from[0], row / latent * head * latent + row % latent, latent};
    };
    return out;
  }
  out.dims = {latent, shapes.head_value, shapes.n_heads};
  out.unit = latent;
  out.locate = [stack, shapes, head, latent](uint64_t row) {
    const uint64_t of_head = row / shapes.head_value * head;
    return Unit{stack.from[0], (of_head + shapes.head_plain + row % shapes.head_value) * latent};
  };
  return out;
}

// Rows of each key head: N of q, N of k, r N of v, r N of z; r value heads share a key head.
OutTensor Grouped(const Stack& stack, const Shapes& shapes, bool z) {
  const uint64_t n = shapes.state, keys = shapes.n_key_heads * n, values = shapes.n_value_heads * n;
  const uint64_t group_values = values / shapes.n_key_heads, group = 2 * n + 2 * group_values;
  stack.Require(shapes.n_key_heads * group == stack.rows, 2 * keys + 2 * values,
                " rows for queries, keys, values and gates");
  if (z) {
    return PickRows(stack, values, [=](uint64_t row) {
      return row / group_values * group + 2 * n + group_values + row % group_values;
    });
  }
  return PickRows(stack, 2 * keys + values, [=](uint64_t row) {
    if (row < keys) return row / n * group + row % n;
    if (row < 2 * keys) return (row - keys) / n * group + n + row % n;
    row -= 2 * keys;
    return row / group_values * group + 2 * n + row % group_values;
  });
}

// Rows of each key-value head: the rows of its queries, its key, its value.
OutTensor HeadsTogether(const Stack& stack, const Shapes& shapes) {
  const uint64_t n_kv = shapes.n_kv_heads, all = shapes.n_heads + 2 * n_kv;
  stack.Require(n_kv > 0 && shapes.n_heads % n_kv == 0 && stack.rows % all == 0, "rows for ", all,
                " heads");
  const uint64_t length = stack.rows / all, of_queries = shapes.n_heads / n_kv * length;
  const uint64_t group = of_queries + 2 * length, queries = shapes.n_heads * length;
  return PickRows(stack, stack.rows, [=](uint64_t row) {
    if (row < queries) return row / of_queries * group + row % of_queries;
    row -= queries;
    const uint64_t is_value = row / (n_kv * length), head = row % (n_kv * length) / length;
    return head * group + of_queries + is_value * length + row % length;
  });
}

// Part 0, 1 or 2 of the rows of each group of heads: its queries, keys or values. Queries and keys
// that pair halves of a head are reordered to pair neighbours.
OutTensor PartOfHeads(const Stack& stack, const Shapes& shapes, size_t part) {
  const uint64_t n = shapes.n_groups, all = shapes.n_heads + 2 * shapes.n_kv_heads;
  stack.Require(n > 0 && shapes.n_heads % n == 0 && shapes.n_kv_heads % n == 0 && all > 0 &&
                    stack.rows % all == 0,
                "rows for ", all, " heads in ", n, " groups");
  const uint64_t length = stack.rows / all, of_queries = shapes.n_heads / n,
                 of_keys = shapes.n_kv_heads / n, heads = part == 0 ? of_queries : of_keys,
                 first = part == 0 ? 0 : of_queries + (part - 1) * of_keys;
  stack.Require(length % 2 == 0, "heads of an even length");
  return PickRows(stack, n * heads * length, [=](uint64_t row) {
    const uint64_t head = row / length, at = row % length,
                   from = part == 2 ? at : at % 2 * (length / 2) + at / 2;
    return (head / heads * (all / n) + first + head % heads) * length + from;
  });
}

// Puts q, k and v one after the other: the file has q, v and k for each quarter of the heads.
OutTensor HeadsInFour(const Stack& stack) {
  stack.Require(stack.rows % 12 == 0, "a multiple of 12 rows");
  const uint64_t part = stack.rows / 12, all = stack.rows / 3;
  return PickRows(stack, stack.rows, [=](uint64_t row) {
    constexpr uint64_t kPlaces[] = {0, 2, 1};
    const uint64_t quarter = row % all / part;
    return (3 * quarter + kPlaces[row / all]) * part + row % part;
  });
}

// A value head's old position: r neighbours share a key head there; here they use successive ones.
uint64_t OldValueHead(const Shapes& shapes, uint64_t head) {
  const uint64_t per_key = shapes.n_value_heads / shapes.n_key_heads;
  return head % shapes.n_key_heads * per_key + head / shapes.n_key_heads;
}

// Skips `skipped` rows, then takes heads of `length` rows.
OutTensor ValueHeads(const Stack& stack, const Shapes& shapes, uint64_t skipped, uint64_t length) {
  stack.Require(stack.rows == skipped + shapes.n_value_heads * length,
                skipped + shapes.n_value_heads * length, " rows");
  return PickRows(stack, stack.rows, [=](uint64_t row) {
    if (row < skipped) return row;
    const uint64_t head = (row - skipped) / length;
    return skipped + OldValueHead(shapes, head) * length + (row - skipped) % length;
  });
}

OutTensor ValueHeadColumns(const Stack& stack, const Shapes& shapes) {
  const uint64_t heads = shapes.n_value_heads, length = shapes.state;
  stack.Require(stack.cols == heads * length, heads * length, " columns");
  OutTensor out = Same(stack);
  out.unit = length;
  out.locate = [=](uint64_t unit) {
    const uint64_t first = unit / heads * stack.cols;
    return Unit{stack.from[0], first + OldValueHead(shapes, unit % heads) * length};
  };
  return out;
}

OutTensor Ordered(const std::vector<const SafeTensor*>& from, Order order, const Shapes& shapes) {
  Stack stack = AsStack(from);
  const bool is_convolution =
      order == Order::kTaps || order == Order::kTapsApart || order == Order::kValueHeadsAfter;
  if (is_convolution && from[0]->shape.size() == 3) {  // [channels, 1, taps]
    stack.Require(stack.rows == 1, "[channels, 1, taps]");
    std::swap(stack.n, stack.rows);
    stack.is_stack = false;
  }
  const uint64_t keys = 2 * shapes.n_key_heads * shapes.state;
  switch (order) {
    using enum Order;
    case kSame:
    case kTaps:
      return Same(stack);
    case kTapsApart:
      return Reshaped(stack, {stack.cols, 1, stack.rows});
    case kByExpert:
    case kByExpertTransposed:
      stack.Require(!stack.is_stack && stack.rows % shapes.n_experts == 0, "rows for ",
                    shapes.n_experts, " experts");
      stack.n = shapes.n_experts;
      stack.rows /= stack.n;
      stack.is_stack = true;
      return order == kByExpert ? Same(stack) : Transposed(stack, 1, 0, 1);
    case kPicked:
      for (const uint64_t row : shapes.picked)
        stack.Require(row < stack.rows, "more than ", row, " rows");
      return PickRows(stack, 2, [rows = shapes.picked](uint64_t row) { return rows[row]; });
    case kVector:
      return Reshaped(stack, {from[0]->elements});
    case kColumn:
      return Reshaped(stack, {1, from[0]->elements});
    case kByGroup:
      stack.Require(from[0]->elements % shapes.n_groups == 0, "a multiple of ", shapes.n_groups);
      return Reshaped(stack, {from[0]->elements / shapes.n_groups, shapes.n_groups});
    case kOtherHalfFirst:
      stack.Require(shapes.head > 0 && stack.rows % shapes.head == 0 && shapes.head % 2 == 0,
                    "heads of ", shapes.head, " rows");
      return PickRows(stack, stack.rows,
                      [n = shapes.head](uint64_t row) { return row / n * n + (row + n / 2) % n; });
    case kRopeQ:
      return Rope(stack, shapes.n_heads, shapes.n_rotated);
    case kRopeK:
      return Rope(stack, shapes.n_kv_heads, shapes.n_rotated);
    case kAfterPadding:
      stack.Require(stack.rows > shapes.padding, "more than ", shapes.padding, " rows");
      return RowsFrom(stack, shapes.padding, stack.rows - shapes.padding);
    case kFirstHalf:
    case kSecondHalf:
      stack.Require(stack.rows % 2 == 0, "an even number of rows");
      return RowsFrom(stack, order == kFirstHalf ? 0 : stack.rows / 2, stack.rows / 2);
    case kEven:
    case kOdd:
      return EveryOther(stack, order == kOdd);
    case kTransposed:
      return Transposed(stack, 1, 0, 1);
    case kFirstHalfTransposed:
    case kSecondHalfTransposed:
      return Transposed(stack, 2, order == kSecondHalfTransposed ? stack.cols / 2 : 0, 1);
    case kEvenTransposed:
    case kOddTransposed:
      return Transposed(stack, 2, order == kOddTransposed ? 1 : 0, 2);
    case kKeyB:
    case kValueB:
      return LatentKeysOrValues(stack, shapes, order == kKeyB);
    case kPartQ:
      return PartOfHeads(stack, shapes, 0);
    case kPartK:
      return PartOfHeads(stack, shapes, 1);
    case kPartV:
      return PartOfHeads(stack, shapes, 2);
    case kHeadsTogether:
      return HeadsTogether(stack, shapes);
    case kHeadsInFour:
      return HeadsInFour(stack);
    case kGroupedQkv:
    case kGroupedZ:
      return Grouped(stack, shapes, order == kGroupedZ);
    case kValueHeads:
      return ValueHeads(stack, shapes, 0, shapes.state);
    case kValueHeadsAfter:
      return ValueHeads(stack, shapes, keys, shapes.state);
    case kValueHeadNumbers:
      return ValueHeads(stack, shapes, 0, 1);
    case kValueHeadColumns:
      return ValueHeadColumns(stack, shapes);
  }
  return {};
}

}  // namespace

uint64_t OutTensor::rows() const {
  uint64_t n = 1;
  for (size_t i = 1; i < dims.size(); ++i) n *= dims[i];
  return n;
}

OutTensor Arrange(const std::string& name, const std::vector<const SafeTensor*>& from, Order order,
                  const Shapes& shapes) {
  for (const SafeTensor* tensor : from) {
    if (!tensor->is_weights()) {
      tensor->Fail("expected weights of type F64, F32, F16 or BF16, found ", tensor->dtype);
    }
  }
  OutTensor out = Ordered(from, order, shapes);
  out.name = name;
  return out;
}

OutTensor ArrangeMxfp4(const std::string& name, const SafeTensor& blocks, const SafeTensor& scales,
                       Order order) {
  const std::vector<uint64_t>& shape = blocks.shape;
  if (blocks.dtype != "U8" || shape.size() != 4 || shape[3] != 16 || blocks.elements == 0) {
    blocks.Fail("expected U8 [experts, rows, blocks, 16], found ", blocks.dtype, " ",
                ShapeText(shape));
  }
  if (scales.dtype != "U8" || scales.elements * 16 != blocks.elements) {
    scales.Fail("expected a byte for each of ", blocks.elements / 16, " blocks, found ",
                scales.dtype, " ", ShapeText(scales.shape));
  }
  const bool half = order != Order::kSame;
  if (half && shape[1] % 2 != 0) blocks.Fail("expected an even number of rows");
  OutTensor out;
  out.name = name;
  out.dims = {shape[2] * 32, half ? shape[1] / 2 : shape[1], shape[0]};
  out.unit = out.dims[0];
  out.scales = &scales;
  out.locate = [&blocks, half, odd = order == Order::kOdd](uint64_t row) {
    return Unit{&blocks, half ? 2 * row + (odd ? 1 : 0) : row};
  };
  return out;
}

}  // namespace engine
