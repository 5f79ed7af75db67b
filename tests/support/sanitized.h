// Whether this is a build with sanitizers. A search for plans takes some thirty times as long there: tests
// of long ones then take smaller nets or fewer cases. Their assertions stay.
#pragma once

namespace thimble {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace thimble
