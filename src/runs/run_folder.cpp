#include "runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "/.lock";

[[noreturn]] void refuse(const char* doing, const std::string& path, int code) {
  user_error("cannot {} '{}': {}", doing, path, why_refused(code));
}

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// "process 1234 on HOST", as far as the lock's file says; it may be anything.
std::string holder_of(int lock) {
  std::array<char, 300> text = {};
  const ssize_t size = ::pread(lock, text.data(), text.size() - 1, 0);
  std::string holder;
  for (ssize_t i = 0; i < size && text[static_cast<size_t>(i)] != '\n'; ++i) {
    const char c = text[static_cast<size_t>(i)];
    if (c < ' ' || c > '~') return "another process";
    holder += c;
  }
  return holder.starts_with("process ") ? holder : "another process";
}

// Whether the open file is still what the name stands for: whoever had it may have removed it.
bool is_at(int file, const std::string& path) {
  struct stat opened = {}, named = {};
  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void check_latest(const std::string& folder) {
  const fs::path latest = fs::path(folder) / "latest";
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(latest, ignored);
  user_check(!fs::exists(status) || fs::is_symlink(status),
             "'{0}' is no link to a checkpoint, as in a copy whose links were followed; remove it "
             "and link it to the newest step (`ln -s step-NNNNNNNN {0}`), or choose another --out",
             latest.string());
}

}  // namespace

RunFolder::RunFolder(const std::string& path) : path_(path) {
  try {
    make_folders(path_);
    lock();
    check_latest(path_);
  } catch (...) {
    remove_empty();
    throw;
  }
}

RunFolder RunFolder::unique(const std::string& path) {
  RunFolder folder;
  const std::string parent = fs::path(path).parent_path().string();
  if (!parent.empty()) folder.make_folders(parent);
  folder.path_ = path;
  for (int again = 2; ::mkdir(folder.path_.c_str(), 0777) != 0; ++again) {
    if (errno != EEXIST || again > 10000) refuse("create the folder", folder.path_, errno);
    folder.path_ = fmt::format("{}-{}", path, again);
  }
  folder.made_.push_back(folder.path_);
  folder.lock();
  return folder;
}

RunFolder::~RunFolder() { remove_empty(); }

void RunFolder::make_folders(const std::string& path) {
  std::string partial;
  for (const fs::path& part : fs::path(path)) {
    partial = (fs::path(partial) / part).string();
    if (::mkdir(partial.c_str(), 0777) == 0) {
      made_.push_back(partial);
    } else if (std::error_code ignored; !fs::is_directory(partial, ignored)) {
      refuse("create the folder", path, errno);
    }
  }
}

void RunFolder::lock() {
  const std::string name = path_ + kLock;
  for (int attempt = 0; attempt < 100; ++attempt) {
    lock_ = FileDescriptor(
        ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666));
    if (lock_.get() < 0 && errno == ENOENT) {  // another run has just left the folder empty
      make_folders(path_);
      continue;
    }
    if (lock_.get() < 0) refuse("write to the folder", path_, errno);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        const FileDescriptor others = std::move(lock_);  // what is not ours is not removed
        user_error("'{}' is in use by {}; wait for it to end, or choose another --out", path_,
                   holder_of(others.get()));
      }
      return;  // a file system without locks: runs are trusted to keep apart, as they were asked to
    }
    if (!is_at(lock_.get(), name)) continue;
    const std::string holder = fmt::format("process {} on {}\n", ::getpid(), host_name());
    // The lock holds without its text, too.
    if (::ftruncate(lock_.get(), 0) != 0 ||
        ::pwrite(lock_.get(), holder.data(), holder.size(), 0) < 0) {
      return;
    }
    return;
  }
  user_error("'{}' is being made and removed by other runs; choose another --out", path_);
}

void RunFolder::remove_empty() {
  if (lock_.get() >= 0 && is_at(lock_.get(), path_ + kLock)) ::unlink((path_ + kLock).c_str());
  lock_ = FileDescriptor();
  for (size_t i = made_.size(); i-- > 0;) ::rmdir(made_[i].c_str());
  made_.clear();
}

}  // namespace thimble
