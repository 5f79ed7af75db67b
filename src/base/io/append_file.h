// A file that grows by whole pieces: what cannot be written is not half there, and waits.
#pragma once

#include <string>
#include <string_view>

#include "base/io/file.h"

namespace thimble {

class AppendFile {
 public:
  // `file` is open for writing and at its end; `path` is the name that messages use.
  AppendFile(FileDescriptor file, std::string path);
  AppendFile(AppendFile&&) = default;
  AppendFile& operator=(AppendFile&&) = delete;
  // Flushes. Bytes that the system refuses now are dropped.
  ~AppendFile();

  // Takes the text; it waits in memory for flush().
  void add(std::string_view text) { waiting_ += text; }
  // Writes all that waits. UserError where the system refuses: the file is as it was then, and the
  // text waits on.
  void flush();

  const std::string& path() const { return path_; }

 private:
  FileDescriptor file_;
  std::string path_;
  std::string waiting_;
};

}  // namespace thimble
