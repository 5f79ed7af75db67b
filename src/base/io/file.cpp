#include "base/io/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/io/nearest_path.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

struct Reason {
  int code;
  const char* what;
  const char* to_try;
};

constexpr std::array<Reason, 18> kReasons = {{
    {ENOENT, "there is no such file or folder", "check the spelling of the path"},
    {ENOTDIR, "a part of the path is a file, not a folder", "check the spelling of the path"},
    {EACCES, "permission denied", "change its permissions or use another folder"},
    {EPERM, "the system does not permit it", "change its permissions or use another folder"},
    {EROFS, "the file system is read-only", "use a folder on another disk"},
    {ENOSPC, "the disk is full", "free some space or use a folder on another disk"},
    {EDQUOT, "your disk quota is used up", "free some space or use a folder on another disk"},
    {EFBIG, "the file would grow past the size limit", "raise the limit with `ulimit -f`"},
    {EISDIR, "it is a folder", "name a file"},
    {EEXIST, "a file of that name is in the way", "use another name"},
    {ENAMETOOLONG, "the name is too long", "use a shorter path"},
    {ELOOP, "its symbolic links go in a circle", "name the real file"},
    {EMFILE, "too many files are open", "raise the limit with `ulimit -n`"},
    {ENFILE, "too many files are open in the system", "close other programs"},
    {EPIPE, "whoever read it is gone", "let the reader read to the end"},
    {EBADF, "it is closed", "open it, or send it to a file"},
    {ENOMEM, "the system has no memory left", "close other programs"},
    {EIO, "the disk reported an error", "check the disk and try again"},
}};

[[noreturn]] void fail(const char* doing, const std::string& path, int code) {
  user_error("cannot {} '{}': {}", doing, path, why_refused(code));
}

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// O_NONBLOCK: a pipe named by mistake must be refused later, not waited for now.
FileDescriptor open_to_read(const std::string& path) {
  FileDescriptor file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (file.get() >= 0) return file;
  const int code = errno;
  if (const std::string meant = code == ENOENT ? nearest_path(path) : ""; !meant.empty()) {
    user_error("cannot open '{}': there is no such file; the nearest is '{}'", path, meant);
  }
  fail("open", path, code);
}

// Creates NAME's temporary beside it; O_EXCL and a counter step over what a crash left behind. A long
// name is cut, so that whatever the system takes as a name has room for its temporary.
std::pair<FileDescriptor, std::string> create_beside(const std::string& target,
                                                     const std::string& shown) {
  const std::string folder = folder_of(target);
  std::string name = fs::path(target).filename().string();
  if (name.size() > 200) {
    if (name.size() > 255) fail("create", shown, ENAMETOOLONG);
    name.resize(200);
  }
  for (int attempt = 0;; ++attempt) {
    std::string temporary = fmt::format("{}/.{}.{}.{}.partial", folder, name, ::getpid(), attempt);
    FileDescriptor file(open_retrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
    if (file.get() >= 0) return {std::move(file), std::move(temporary)};
    if (errno != EEXIST || attempt == 1000) fail("create", shown, errno);
  }
}

std::string followed(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return path;
  if (fs::is_directory(status)) fail("write", path, EISDIR);
  user_check(fs::is_regular_file(status),
             "cannot write '{}': it is a device or pipe; name a regular file", path);
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

void sync(int fd, const char* doing, const std::string& path) {
  int result = 0;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  // Some network file systems cannot sync a folder and say EINVAL; they have nothing to lose.
  if (result != 0 && errno != EINVAL && errno != ENOTSUP) fail(doing, path, errno);
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

// Braces: the path is opened before it is moved.
ReadFile::ReadFile(std::string path) : ReadFile{open_to_read(path), std::move(path)} {}

ReadFile::ReadFile(FileDescriptor file, std::string path)
    : path_(std::move(path)), file_(std::move(file)) {
  struct stat status = {};
  if (::fstat(file_.get(), &status) != 0) fail("open", path_, errno);
  if (S_ISDIR(status.st_mode)) fail("open", path_, EISDIR);
  user_check(S_ISREG(status.st_mode),
             "cannot open '{}': it is a device or pipe; name a regular file", path_);
  size_ = status.st_size;
}

void ReadFile::read_at(int64_t offset, std::span<std::byte> out) const {
  const int64_t first = offset;
  const size_t wanted = out.size();
  while (!out.empty()) {
    const ssize_t got = ::pread(file_.get(), out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_, errno);
    user_check(got != 0,
               "cannot read '{}': it ends at byte {}, but bytes {} to {} are wanted; it is "
               "truncated, so get a fresh copy of it",
               path_, offset, first, first + static_cast<int64_t>(wanted));
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

std::string read_text(const std::string& path, std::string_view what, Bytes most) {
  const ReadFile file(path);
  user_check(file.size() <= most.count,
             "'{}' has {} bytes, and {} can have {} at most; check the path", path, file.size(),
             what, most.count);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool exists(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail("open", path, errno);
  return false;
}

std::string why_refused(int code) {
  for (const Reason& reason : kReasons) {
    if (reason.code == code) return fmt::format("{}; {}", reason.what, reason.to_try);
  }
  return fmt::format("{}; check the path and try again", std::strerror(code));
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path,
               int64_t already_written) {
  // Past RLIMIT_FSIZE the system would not fail the write but kill the process (SIGXFSZ).
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<uint64_t>(already_written) + bytes.size() > limit.rlim_cur) {
    fail("write", path, EFBIG);
  }
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail("write", path, put == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  user_check(!fs::path(path_).filename().empty(),
             "cannot write '{}': it names a folder; add a file name", path_);
  target_ = followed(path_);
  std::tie(file_, temporary_) = create_beside(target_, path_);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  internal_check(!temporary_.empty(), "AtomicFile: write after commit");
  write_all(file_.get(), bytes, path_, written_);
  written_ += static_cast<int64_t>(bytes.size());
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit() {
  internal_check(!temporary_.empty(), "AtomicFile: committed twice");
  sync(file_.get(), "write", path_);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("write", path_, errno);
  temporary_.clear();
  const std::string folder = folder_of(target_);
  const FileDescriptor directory(open_retrying(folder.c_str(), O_RDONLY | O_DIRECTORY));
  // A folder may be writable and yet not readable: then the rename stands, only later on disk.
  if (directory.get() >= 0) sync(directory.get(), "write", folder);
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

SpoolFile::SpoolFile(std::string purpose) : purpose_(std::move(purpose)) {
  const char* chosen = std::getenv("TMPDIR");
  int code = ENOENT;
  for (const char* folder : {chosen, "/var/tmp", "/tmp"}) {
    if (folder == nullptr || *folder == '\0') continue;
    std::string name = fmt::format("{}/thimble.XXXXXX", folder);
    file_ = FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (file_.get() >= 0) {
      ::unlink(name.c_str());
      purpose_ += fmt::format(" (unpacked in {})", folder);
      return;
    }
    code = errno;
  }
  fail("make a temporary file for", purpose_, code);
}

void SpoolFile::write(std::span<const std::byte> bytes) {
  write_all(file_.get(), bytes, purpose_, written_);
  written_ += static_cast<int64_t>(bytes.size());
}

ReadFile SpoolFile::finish() && { return ReadFile(std::move(file_), std::move(purpose_)); }

void ensure_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("create the folder", path, error.value());
  if (!fs::is_directory(path, error)) fail("create the folder", path, EEXIST);
  const auto [file, temporary] = create_beside(path + "/probe", path);
  ::unlink(temporary.c_str());
}

}  // namespace thimble
