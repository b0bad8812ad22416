// tojson, as Python's json.dumps writes it.
#include <algorithm>
#include <cmath>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/print.h"

namespace tokenizer::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Runtime& rt, const JsonOptions& options) : rt_(rt), options_(options) {}

  void Write(const Value& value) {
    const Nesting nesting = rt_.OneLevel();
    rt_.Read(value);
    if (value.IsString()) {
      WriteString(value.text());
    } else if (value.IsDict()) {
      WriteDict(value.dict());
    } else if (value.IsList() && value.list().HasLength()) {
      const Values& items = value.list().items;
      WriteItems("[]", items.size(), [&](size_t i) { Write(items[i]); });
    } else {
      Put(Scalar(value));
    }
  }
  Text Take() { return std::move(out_); }

 private:
  void Put(std::string_view bytes) { out_.Append(bytes); }

  static std::string Scalar(const Value& value) {
    if (value.IsNone()) return "null";
    if (value.IsBool()) return value.boolean() ? "true" : "false";
    if (value.IsInt()) return std::to_string(value.integer());
    if (value.IsBigInteger()) return value.object().Repr();
    if (!value.IsFloat()) Fail("Object of type ", value.TypeName(), " is not JSON serializable");
    if (std::isnan(value.number())) return "NaN";
    if (std::isinf(value.number())) return value.number() < 0 ? "-Infinity" : "Infinity";
    return FloatRepr(value.number());
  }

  void WriteString(const Text& text) {
    out_.Append("\"");
    out_.AppendMapped(text, [this](char32_t code, std::string_view bytes, String& out) {
      AppendEscaped(code, bytes, out);
    });
    out_.Append("\"");
  }

  void AppendEscaped(char32_t code, std::string_view bytes, String& out) const {
    constexpr std::string_view kNamed = "\"\\\n\r\t\b\f";
    constexpr std::string_view kNames = "\"\\nrtbf";
    const size_t named =
        code < 0x80 ? kNamed.find(static_cast<char>(code)) : std::string_view::npos;
    if (named != std::string_view::npos) {
      out += {'\\', kNames[named]};
    } else if (code < 0x20 || (options_.ensure_ascii && code >= 0x7F && code < 0x10000)) {
      AppendEscape('u', 4, code, out);
    } else if (options_.ensure_ascii && code >= 0x10000) {  // a surrogate pair
      AppendEscape('u', 4, 0xD800 + ((code - 0x10000) >> 10), out);
      AppendEscape('u', 4, 0xDC00 + ((code - 0x10000) & 0x3FF), out);
    } else {
      out += bytes;
    }
  }

  // `brackets`: the opening and the closing one. write_item(size_t) writes one of n.
  template <typename Fn>
  void WriteItems(std::string_view brackets, size_t n, Fn write_item) {
    if (n == 0) return Put(brackets);
    Put(brackets.substr(0, 1));
    if (options_.indent) margin_ += *options_.indent;
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) Put(options_.item_separator);
      NewLine();
      write_item(i);
    }
    if (options_.indent) margin_.resize(margin_.size() - options_.indent->size());
    NewLine();
    Put(brackets.substr(1));
  }

  void WriteDict(const Dict& dict) {
    Vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (options_.sort_keys) SortByKey(dict, order);
    WriteItems("{}", order.size(), [&](size_t i) {
      const auto& [key, item] = dict.entries[order[i]];
      if (key.IsString()) {
        WriteString(key.text());
      } else {
        Put("\"" + Scalar(key) + "\"");
      }
      Put(options_.key_separator);
      Write(item);
    });
  }

  static void SortByKey(const Dict& dict, Vector<size_t>& order) {
    for (const auto& entry : dict.entries) {
      if (!entry.first.IsString()) Fail("tojson can only sort keys that are strings");
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return dict.entries[a].first.view() < dict.entries[b].first.view();
    });
  }

  void NewLine() {
    if (!options_.indent) return;
    Put("\n");
    Put(margin_);
  }

  Runtime& rt_;
  const JsonOptions& options_;
  Text out_;
  String margin_;  // of the line that is written
};

}  // namespace

Text ToJson(Runtime& rt, const Value& value, const JsonOptions& options) {
  JsonWriter writer(rt, options);
  writer.Write(value);
  return writer.Take();
}

}  // namespace tokenizer::jinja
