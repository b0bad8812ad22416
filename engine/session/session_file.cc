// The checks of a session file, and its parts in order.
#include "engine/session/session_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/error.h"
#include "engine/pass/rope.h"
#include "engine/session/xxh64.h"
#include "gguf/error.h"
#include "gguf/mapped_file.h"
#include "gguf/output_file.h"
#include "gguf/reader.h"
#include "kernels/threads/thread_pool.h"

namespace engine {
namespace {

using tokenizer::TokenId;

constexpr std::string_view kMagic = "pronk session 5\n", kAnyVersion = "pronk session ";

struct Header {
  std::array<char, 16> magic;
  uint64_t hash, model, stamp, n_tokens, vocab_size, kv_type, is_long, state_bytes;
};
static_assert(sizeof(Header) == 80);

// A hash of the pieces' hashes.
class Hash {
 public:
  void Add(std::span<const std::byte> bytes) { hashes_.push_back(Xxh64(bytes)); }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  void Add(uint64_t number) { hashes_.push_back(number); }
  uint64_t All() const { return Xxh64(std::as_bytes(std::span(hashes_))); }

 private:
  std::vector<uint64_t> hashes_;
};

Hash HashOf(const gguf::Metadata& metadata) {
  Hash hash;
  for (const gguf::Metadata::Entry& entry : metadata.entries()) {
    hash.Add(entry.key);
    hash.Add({entry.value.data, entry.value.bytes});
  }
  return hash;
}

void AddShape(const gguf::TensorView& tensor, Hash& hash) {
  hash.Add(tensor.name);
  hash.Add(static_cast<uint64_t>(tensor.dtype));
  for (const uint64_t n : tensor.dims) hash.Add(n);
}

// Hashes all metadata and all weights, so that a session belongs to only one model. All threads
// hash pieces of a megabyte. For 1.17 GB in memory, `run --prompt-cache` takes 0.17 s more
// processor time on two shared cores (1.4 s in total for a prompt of 36 tokens), and no more while
// the stamp matches.
uint64_t HashOf(const Model& model, kernels::ThreadPool& pool) {
  constexpr size_t kPiece = size_t{1} << 20;
  Hash hash = HashOf(model.file.metadata());
  std::vector<std::span<const std::byte>> pieces;
  for (const gguf::TensorView& tensor : model.file.tensors()) {
    AddShape(tensor, hash);
    for (uint64_t at = 0; at < tensor.bytes; at += kPiece) {
      pieces.emplace_back(tensor.data + at, std::min<uint64_t>(kPiece, tensor.bytes - at));
    }
  }
  std::vector<uint64_t> hashes(pieces.size());
  pool.Run([&] {
    pool.For(pieces.size(), 1, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) hashes[i] = Xxh64(pieces[i]);
    });
  });
  hash.Add(std::as_bytes(std::span(hashes)));
  return hash.All();
}

// A stamp that changes when the model may no longer match a known hash: a hash of its metadata,
// which --override-kv may change, and of its files' device, inode, size and time of the last
// change. 0 if a file changed so recently that its time might hide another change.
uint64_t StampOf(const gguf::File& file) {
  constexpr std::chrono::seconds kTicks(2);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Hash hash = HashOf(file.metadata());
  for (const gguf::FileId& id : file.ids()) {
    if (std::chrono::nanoseconds(id.changed) + kTicks > now) return 0;
    for (const uint64_t n : {id.device, id.inode, id.bytes, id.changed}) hash.Add(n);
  }
  return hash.All();
}

// The session's hash of the model, or the file's hash if its stamp shows the same model.
Session::ModelHash HashOf(Session& session, const Session::ModelHash& of_file) {
  Session::ModelHash& known = session.model_hash();
  if (known.hash != 0) return known;
  const uint64_t stamp = StampOf(session.model().file);
  if (stamp != 0 && stamp == of_file.stamp) return of_file;
  return known = {HashOf(session.model(), session.pool()), stamp};
}

Header HeaderOf(Session& session, SequenceState& state, size_t n_tokens) {
  Header header = {};
  kMagic.copy(header.magic.data(), header.magic.size());
  const Model& model = session.model();
  header.n_tokens = n_tokens;
  header.vocab_size = model.tokenizer->vocab().size();
  const kernels::KvTypes types = state.kv_type();
  header.kv_type = static_cast<uint64_t>(types.k) | static_cast<uint64_t>(types.v) << 8;
  // RoPE angles may depend on the context's length.
  header.is_long = HasLongFactors(model, state.capacity()) ? 1 : 0;
  header.state_bytes = state.ChunkBytes(n_tokens);
  return header;
}

// The content after the header.
struct Content {
  std::span<const std::byte> tokens, logits, state;
};

// The hash of the header's other numbers and of the content. The state is hashed chunk by chunk,
// from the session's own buffers if content.state is empty.
uint64_t HashOf(const Header& header, const Content& content, SequenceState& state) {
  Hash hash;
  for (const uint64_t n : {header.model, header.stamp, header.n_tokens, header.vocab_size,
                           header.kv_type, header.is_long, header.state_bytes}) {
    hash.Add(n);
  }
  hash.Add(content.tokens);
  hash.Add(content.logits);
  size_t done = 0;
  state.ForEachChunk(header.n_tokens, [&](std::span<std::byte> chunk) {
    hash.Add(content.state.empty() ? chunk : content.state.subspan(done, chunk.size()));
    done += chunk.size();
  });
  return hash.All();
}

// Checks everything except token ids.
Content Checked(std::span<const std::byte> bytes, const std::string& path, Session& session) {
  const auto fail = [&](const std::string& what) {
    throw RefusedSession(gguf::PrintablePath(path), " ", what);
  };
  Header header;
  if (bytes.size() < sizeof(header)) fail("is not a session file of pronk");
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string_view magic(header.magic.data(), header.magic.size());
  if (magic.starts_with(gguf::kMagic)) fail("is a GGUF file, not a session of pronk");
  if (magic != kMagic) {
    fail(magic.starts_with(kAnyVersion) ? "was written by another version of pronk: remove it"
                                        : "is not a session file of pronk");
  }
  if (header.n_tokens == 0 || header.n_tokens > session.capacity()) {
    throw SessionTooLong(gguf::PrintablePath(path), " holds ", header.n_tokens,
                         " tokens, and the context has room for ", session.capacity());
  }
  size_t needed = header.n_tokens;
  if (header.is_long != 0 && HasLongFactors(session.model(), session.capacity())) {
    needed = std::max(needed, session.model().config.ropes[0].original_context + 1);
    if (!HasLongFactors(session.model(), session.state().capacity())) session.Rewind(0);
  }
  if (!session.Reserve(needed)) fail("needs more memory than there is");
  SequenceState& state = session.RememberedState();
  const Header expected = HeaderOf(session, state, header.n_tokens);
  if (header.kv_type != expected.kv_type) fail("was written with another type of cache");
  if (header.is_long != expected.is_long) fail("belongs to a context of another kind");
  const Session::ModelHash model = HashOf(session, {header.model, header.stamp});
  if (header.model != model.hash)
    throw OtherModel(gguf::PrintablePath(path), " belongs to another model");
  const size_t n_tokens = header.n_tokens * sizeof(TokenId);
  const size_t n_logits = expected.vocab_size * sizeof(float);
  const std::span<const std::byte> rest = bytes.subspan(sizeof(header));
  if (header.vocab_size != expected.vocab_size || header.state_bytes != expected.state_bytes ||
      rest.size() != n_tokens + n_logits + expected.state_bytes) {
    fail("is damaged: it should have " +
         std::to_string(sizeof(header) + n_tokens + n_logits + expected.state_bytes) +
         " bytes, and has " + std::to_string(bytes.size()));
  }
  const Content content = {rest.first(n_tokens), rest.subspan(n_tokens, n_logits),
                           rest.subspan(n_tokens + n_logits)};
  if (HashOf(header, content, state) != header.hash) fail("is damaged");
  session.model_hash() = model;
  return content;
}

template <class T>
std::vector<T> Copied(std::span<const std::byte> bytes) {
  std::vector<T> items(bytes.size() / sizeof(T));
  std::memcpy(items.data(), bytes.data(), bytes.size());
  return items;
}

}  // namespace

uint64_t FingerprintOf(const gguf::File& file) {
  constexpr uint64_t kSample = 4096;
  Hash hash = HashOf(file.metadata());
  for (const gguf::TensorView& tensor : file.tensors()) {
    AddShape(tensor, hash);
    hash.Add(std::span(tensor.data, std::min(kSample, tensor.bytes)));
  }
  return hash.All();
}

void SaveSession(Session& session, const std::string& path) {
  if (gguf::BeginsAsGguf(path))
    throw Error(gguf::PrintablePath(path),
                " is a GGUF file, not a session of pronk: it is not overwritten");
  gguf::OutputFile out(path, session.model().file.ids());
  SequenceState& state = session.RememberedState();
  Header header = HeaderOf(session, state, session.position());
  const Session::ModelHash model = HashOf(session, {});
  header.model = model.hash;
  header.stamp = model.stamp;
  const Content content = {std::as_bytes(session.tokens()), std::as_bytes(session.logits()), {}};
  header.hash = HashOf(header, content, state);
  out.Write(std::as_bytes(std::span(&header, 1)));
  out.Write(content.tokens);
  out.Write(content.logits);
  state.ForEachChunk(session.position(), [&](std::span<std::byte> chunk) { out.Write(chunk); });
  out.Commit();
}

void LoadSession(Session& session, const std::string& path) {
  const gguf::MappedFile file = gguf::MappedFile::Open(path, "a session of pronk");
  const Content content = Checked(file.bytes(), path, session);
  const std::vector<TokenId> tokens = Copied<TokenId>(content.tokens);
  const size_t vocab_size = session.model().config.vocab_size;
  if (!std::ranges::all_of(
          tokens, [&](TokenId id) { return id >= 0 && static_cast<size_t>(id) < vocab_size; })) {
    throw RefusedSession(gguf::PrintablePath(path),
                         " is damaged: it names tokens that the model lacks");
  }
  session.Rewind(0);
  size_t done = 0;
  session.RememberedState().ForEachChunk(tokens.size(), [&](std::span<std::byte> chunk) {
    std::ranges::copy(content.state.subspan(done, chunk.size()), chunk.begin());
    done += chunk.size();
  });
  session.Restore(tokens, Copied<float>(content.logits));
}

}  // namespace engine
