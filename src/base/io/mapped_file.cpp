#include "base/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.h"

namespace thimble {

MappedFile::MappedFile(const std::string& path, std::string_view what, Bytes most) {
  const ReadFile checked(path);  // a regular file that can be read
  user_check(checked.size() <= most.count,
             "'{}' has {} bytes, and {} can have {} at most; check the path", path, checked.size(),
             what, most.count);
  if (checked.size() == 0) return;
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  const bool there = file.get() >= 0 && fstat(file.get(), &status) == 0;
  user_check(there && S_ISREG(status.st_mode) && status.st_size == checked.size(),
             "'{}' has changed while it was read; try again", path);
  const auto size = static_cast<size_t>(status.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  user_check(mapped != MAP_FAILED, "cannot read '{}': {}", path, why_refused(errno));
  bytes_ = {static_cast<const std::byte*>(mapped), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::forget() const {
  if (!bytes_.empty()) {
    madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
  }
}

}  // namespace thimble
