// Settings of OpenMP's: its threads spin as long as by default, but while there are more of them
// than processors ten times as long as by default, some microseconds.
#pragma once

namespace thimble {

inline constexpr const char* kWaitPolicy = "active";  // OMP_WAIT_POLICY
inline constexpr const char* kSpinCount = "300000";   // GOMP_SPINCOUNT

}  // namespace thimble
