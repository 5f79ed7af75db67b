// SIGINT and SIGTERM as a question that a long task asks between two steps.
#pragma once

namespace thimble {

// From construction to destruction the first of either signal is remembered, and `notice` goes to
// standard error at once; the second ends the process as if nobody had listened. That holds even
// where a shell started the process in the background with SIGINT ignored: whoever sends it means
// it. REQUIRES: one at a time; `notice` is a literal.
class StopSignals {
 public:
  explicit StopSignals(const char* notice);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  int received() const;  // SIGINT, SIGTERM; 0: none
};

const char* name_of_signal(int signal);  // "SIGINT", "SIGTERM"

}  // namespace thimble
