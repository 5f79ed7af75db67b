// Event files as TensorBoard reads them, written by hand: the few messages that scalars take are
// not worth a library.
//
//   record   length: u64 | masked CRC-32C of it: u32 | an Event | masked CRC-32C of that: u32
//   Event    wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/append_file.h"

namespace thimble {

class EventFile {
 public:
  // A new file in the folder, which is made where it is missing. Of a run that goes on, readers
  // drop what older files in the folder have of steps behind `resumed_at`.
  EventFile(const std::string& folder, int64_t resumed_at);

  void add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  void flush() { file_->flush(); }

  const std::string& path() const { return file_->path(); }

 private:
  std::optional<AppendFile> file_;
};

// A record around an event, and the event's bytes: for tests, too.
std::string framed_record(std::string_view event);
std::string scalars_event(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars);

}  // namespace thimble
