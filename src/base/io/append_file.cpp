#include "base/io/append_file.h"

#include <unistd.h>

#include <span>
#include <utility>

#include "base/error.h"

namespace thimble {

AppendFile::AppendFile(FileDescriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

AppendFile::~AppendFile() {
  try {
    if (file_.get() >= 0) flush();
  } catch (const UserError&) {  // whoever needed it there has asked for flush()
  }
}

void AppendFile::flush() {
  if (waiting_.empty()) return;
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  try {
    write_all(file_.get(), std::as_bytes(std::span(waiting_)), path_);
  } catch (const UserError&) {
    if (before >= 0 && ::ftruncate(file_.get(), before) == 0)
      ::lseek(file_.get(), before, SEEK_SET);
    throw;
  }
  waiting_.clear();
}

}  // namespace thimble
