#include "grammar/json_bounds.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace grammar {
namespace {

using Json = nlohmann::ordered_json;

// Scans a text without building values: they take many times its size, are freed and copied
// recursively, and an object compares each new key with all its keys.
class Bounds : public Json::json_sax_t {
 public:
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t number) override {
    return Count() && Within(number <= INT64_MAX, "a number of more than 63 bits");
  }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Open(); }
  bool key(string_t&) override {
    return Within(++keys_.back() <= kMaxKeys,
                  "more than " + std::to_string(kMaxKeys) + " keys in one object");
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t byte, const std::string&, const Json::exception& error) override {
    // The only error without an offset is a number that is too large.
    wrong_ = dynamic_cast<const Json::out_of_range*>(&error) != nullptr
                 ? "is JSON with a number that is too large"
                 : "is not JSON from byte " + std::to_string(byte) + " on";
    return false;
  }

  const std::string& wrong() const { return wrong_; }

 private:
  static constexpr size_t kMaxDepth = 64, kMaxKeys = 1000, kMaxValues = size_t{1} << 20;

  bool Within(bool within, const std::string& what) {
    if (!within) wrong_ = "is JSON with " + what;
    return within;
  }
  bool Count() {
    return Within(++n_values_ <= kMaxValues, "more than " + std::to_string(kMaxValues) + " values");
  }
  bool Open() {
    keys_.push_back(0);
    return Count() &&
           Within(keys_.size() <= kMaxDepth, "more than " + std::to_string(kMaxDepth) + " levels");
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }
  std::vector<size_t> keys_;  // number of keys in each open object or list
  size_t n_values_ = 0;
  std::string wrong_;
};

}  // namespace

std::string JsonFault(const std::string& text) {
  Bounds bounds;
  return Json::sax_parse(text, &bounds) ? "" : bounds.wrong();
}

}  // namespace grammar
