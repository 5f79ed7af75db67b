// Files as the rest of the system wants them: opened once, read by exact ranges, and written so
// that a reader never sees half of one. Every failure is a UserError that names the path, the
// reason and what to try.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/number/bytes.h"

namespace thimble {

// Owns a POSIX file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// A regular file open for reading. Reads allocate nothing and may come from several threads.
class ReadFile {
 public:
  explicit ReadFile(std::string path);
  // An already open file; `path` is the name that messages use.
  ReadFile(FileDescriptor file, std::string path);

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // when it was opened
  // Fills `out` with the bytes from `offset` on, all of them or UserError.
  void read_at(int64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  FileDescriptor file_;
  int64_t size_ = 0;
};

// All of a small file that is read as a whole. UserError where it has more than `most` bytes (a
// file of holes costs nothing to make) or is no regular file: a pipe is refused, not waited for.
// `what` is what it should be: "a plan file".
std::string read_text(const std::string& path, std::string_view what, Bytes most);

// Whether there is anything of that name. UserError where the system does not say: a name too long,
// links in a circle, a folder that may not be searched.
bool exists(const std::string& path);

// Why the system refused, and what to try: "the disk is full; free some space or ...". `code`:
// errno.
std::string why_refused(int code);

// A file that appears under its name complete and on disk, or not at all.
//
//   write() ... write()          commit()
//   .NAME.PID.N.partial   ──▶    fsync, rename to NAME, fsync of the folder
//
// Without commit() the destructor removes the temporary, and whatever stood at `path` is untouched.
// A symbolic link at `path` is followed; a folder or device there is refused.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // REQUIRES: called at most once, and no write() after it.
  void commit();

 private:
  std::string path_;       // as the caller spelled it, for messages
  std::string target_;     // with symbolic links followed
  std::string temporary_;  // empty once renamed
  FileDescriptor file_;
  int64_t written_ = 0;
};

// Writes `text` to `path` through an AtomicFile.
void write_file(const std::string& path, std::string_view text);

// Scratch space on disk that has no name: it is gone when closed, even after a crash. Lives in
// $TMPDIR, else /var/tmp, else /tmp (which is often memory, and memory is what we are saving).
class SpoolFile {
 public:
  // `purpose` is how messages name the file, e.g. the file it is unpacked from.
  explicit SpoolFile(std::string purpose);

  void write(std::span<const std::byte> bytes);
  ReadFile finish() &&;

 private:
  std::string purpose_;
  FileDescriptor file_;
  int64_t written_ = 0;
};

// Makes the folder and its parents where they are missing, and proves that a file can be created
// in it. Throws UserError when either fails.
void ensure_directory(const std::string& path);

// Writes all of `bytes` at the descriptor's position, `already_written` bytes into the file. This
// is the one place from which file data goes to the system, so tests aim it at /dev/full.
void write_all(int fd, std::span<const std::byte> bytes, const std::string& path,
               int64_t already_written = 0);

}  // namespace thimble
