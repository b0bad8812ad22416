// Maps the engine's exceptions to kinds of pronk::Error.
#include "engine/library/guarded.h"

#include <new>

#include "engine/error.h"
#include "engine/session/session_file.h"
#include "gguf/mapped_file.h"
#include "gguf/output_file.h"
#include "gguf/reader.h"
#include "grammar/grammar.h"
#include "tokenizer/errors.h"

namespace library {
namespace {

using pronk::ErrorKind;

template <class Exception>
bool Is(const std::exception& error) {
  return dynamic_cast<const Exception*>(&error) != nullptr;
}

ErrorKind KindOf(const std::exception& error) {
  if (Is<engine::NoMemory>(error) || Is<std::bad_alloc>(error)) return ErrorKind::kNoMemory;
  if (Is<engine::TooLong>(error)) return ErrorKind::kContextFull;
  if (Is<engine::RefusedSession>(error)) return ErrorKind::kRefused;
  if (Is<engine::Error>(error)) return ErrorKind::kWrongUse;
  if (Is<gguf::NotFound>(error)) return ErrorKind::kNotFound;
  if (Is<gguf::NotGguf>(error)) return ErrorKind::kNotAModel;
  if (Is<gguf::OutputError>(error)) return ErrorKind::kOther;
  if (Is<gguf::Error>(error)) return ErrorKind::kRefused;
  if (Is<grammar::Error>(error)) return ErrorKind::kBadGrammar;
  if (Is<tokenizer::TemplateError>(error)) return ErrorKind::kBadTemplate;
  if (Is<tokenizer::Interrupted>(error)) return ErrorKind::kCancelled;
  return ErrorKind::kOther;
}

}  // namespace

pronk::Error ErrorFor(const std::exception& error) {
  return pronk::Error(Is<std::bad_alloc>(error) ? "out of memory" : error.what(), KindOf(error));
}

}  // namespace library
