// The page of `pronk trace --html`: page.html, which the build makes a string of.
#ifndef PRONK_CLI_TRACE_TRACE_PAGE_H_
#define PRONK_CLI_TRACE_TRACE_PAGE_H_

#include <string_view>

namespace cli {

// With four places to fill in, in this order: @NONCE@, @ROOFLINE@, @TRACE@, @NONCE@.
extern const std::string_view kTracePage;

}  // namespace cli

#endif  // PRONK_CLI_TRACE_TRACE_PAGE_H_
