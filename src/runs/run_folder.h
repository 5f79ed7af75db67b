// The folder of a run, held against other runs.
//
//   OUT/.lock    locked by flock(2) and naming the process that has it; the system lets go of the lock
//                however that process ends, so that nothing has to be cleaned up after a kill
#pragma once

#include <string>
#include <vector>

#include "base/io/file.h"

namespace thimble {

class RunFolder {
 public:
  // Makes the folder and its parents where they are missing, and locks it. UserError where another
  // process has it, where it cannot be written, or where `latest` in it is no link (save_checkpoint
  // could not move it on).
  explicit RunFolder(const std::string& path);
  // A new folder that nobody else has: PATH, else PATH-2, PATH-3, ...
  static RunFolder unique(const std::string& path);

  RunFolder(RunFolder&&) = default;
  RunFolder& operator=(RunFolder&&) = delete;
  // Lets go. Folders that this made are removed where nothing was put into them.
  ~RunFolder();

  const std::string& path() const { return path_; }

 private:
  RunFolder() = default;
  void make_folders(const std::string& path);
  void lock();
  void remove_empty();

  std::string path_;
  std::vector<std::string> made_;  // by this, parents first
  FileDescriptor lock_;
};

}  // namespace thimble
