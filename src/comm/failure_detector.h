// Connections between ranks that detect the end of one, and carry its reason.
//
// MPI may wait forever for a rank that is gone. So every rank holds a connection to rank 0, watched
// by a thread: the system closes a connection however a process ends (and, where a machine is lost,
// within seconds). A process that learns of a lost rank says so and ends. Rank 0 passes it on.
//
//   rank 0 ──┬── rank 1        'E' sentence: a rank ends, and why      'B': it is done, all is well
//            └── rank 2        closed without a word: it was killed
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/io/file.h"
#include "comm/communicator.h"

namespace thimble {

class FailureDetector {
 public:
  // Called by all ranks at once. Where machines do not let each other connect there is no line, and
  // connected() is false.
  explicit FailureDetector(Communicator& ranks);
  // Says that all is well, unless report_failure() were.
  ~FailureDetector();
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  bool connected() const { return connected_; }

  // The remedy for a lost rank, for the sentence that is printed then.
  void set_remedy(std::string sentence);

  // Tells the others why this rank ends. False: rank 0 ends for the same reason and says so.
  bool report_failure(const std::string& sentence);

 private:
  struct Line {
    FileDescriptor socket;
    int rank = 0;
    std::string heard = {};  // what has come so far
    bool well = false;       // the other side is done
  };

  void connect(Communicator& ranks);
  void accept_all(int listener, uint64_t key, int count);
  void call_first(const std::string& place);
  void watch();
  // Reads what there is; true: nothing more will come.
  bool listen(Line& line);
  [[noreturn]] void end(int rank, const std::string& words);
  void tell(const std::string& words, int but_not);

  const int rank_;
  std::vector<std::string> who_;  // by rank: "process 123 on HOST"
  std::vector<Line> lines_;
  FileDescriptor wake_;  // readable: the thread is to end
  bool connected_ = false;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;    // guards what follows
  std::string remedy_;  // begins with "; "
  std::string said_by_first_;
  std::thread thread_;
};

}  // namespace thimble
