#include "data/prepare/get/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/sha256.h"

extern char** environ;

namespace thimble {
namespace {

namespace fs = std::filesystem;

// Exit codes of curl.
constexpr int kNoResume = 33, kRefused = 22, kNoCurl = 127;

int64_t size_of_file(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const size_t at = text.rfind('\n');
  return at == std::string::npos ? text : text.substr(at + 1);
}

int run_curl(const RemoteFile& file, const std::string& part, std::string& said,
             const FetchProgress& progress) {
  const auto report = [&] {
    if (progress) progress(size_of_file(part), file.wanted.bytes);
  };
  const int status = run_program({"curl", "--fail", "--location", "--silent", "--show-error",
                                  "--connect-timeout", "20", "--speed-time", "60", "--speed-limit",
                                  "1", "--continue-at", "-", "--output", part, file.url},
                                 said, report);
  report();
  return status;
}

}  // namespace

int run_program(const std::vector<std::string>& words, std::string& said,
                const std::function<void()>& meanwhile) {
  int ends[2];
  user_check(pipe2(ends, O_CLOEXEC) == 0, "cannot start '{}': {}", words[0], why_refused(errno));
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 2);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return kNoCurl;
  user_check(error == 0, "cannot start '{}': {}", words[0], why_refused(error));
  writer = FileDescriptor();
  // Its end of the pipe closes with it.
  for (;;) {
    pollfd ready = {reader.get(), POLLIN, 0};
    const int events = poll(&ready, 1, 500);
    if (meanwhile) meanwhile();
    if (events <= 0) continue;
    std::array<char, 512> text;
    const ssize_t size = read(reader.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    said.append(text.data(), static_cast<size_t>(size));
    if (said.size() > 4096) said.erase(0, said.size() - 4096);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string check_file(const std::string& path, const ExpectedFile& wanted) {
  const ReadFile file(path);
  user_check(wanted.bytes == 0 || file.size() == wanted.bytes,
             "'{}' has {} bytes where the published file has {}; {}", path, file.size(),
             wanted.bytes, wanted.to_try);
  Sha256 hash;
  std::array<std::byte, 65536> block;
  for (int64_t at = 0; at < file.size();) {
    const auto size = static_cast<size_t>(std::min<int64_t>(file.size() - at, block.size()));
    file.read_at(at, std::span(block).first(size));
    hash.update(std::span<const std::byte>(block).first(size));
    at += static_cast<int64_t>(size);
  }
  std::string found = hash.hex();
  user_check(wanted.sha256.empty() || found == wanted.sha256,
             "'{}' is damaged or another version: its sha256 is {} where {} is wanted; {}", path,
             found, wanted.sha256, wanted.to_try);
  return found;
}

void fetch(const RemoteFile& file, const FetchProgress& progress) {
  const std::string part = file.path + ".part";
  std::error_code ignored;
  std::string said;
  const bool all_there = file.wanted.bytes > 0 && size_of_file(part) == file.wanted.bytes;
  int status = all_there ? 0 : run_curl(file, part, said, progress);
  const bool stuck = status == kNoResume || (status == kRefused && size_of_file(part) > 0);
  if (stuck) {  // a server that does not go on where it was cut off
    fs::remove(part, ignored);
    said.clear();
    status = run_curl(file, part, said, progress);
  }
  user_check(
      status != kNoCurl,
      "there is no `curl` program to fetch '{}' with; install it (`apt-get install curl`), or "
      "fetch the file otherwise and name its folder with --from",
      file.url);
  user_check(
      status == 0,
      "cannot fetch '{}': {}; what arrived is kept: repeat the command to go on, or, without "
      "a network, fetch the file elsewhere and name its folder with --from",
      file.url, said.empty() ? fmt::format("curl ended with {}", status) : last_line(said));
  try {
    check_file(part, file.wanted);
  } catch (const UserError& error) {
    fs::remove(part, ignored);
    user_error("what '{}' sent is not what is wanted: {}", file.url, error.what());
  }
  std::error_code error;
  fs::rename(part, file.path, error);
  user_check(!error, "cannot put '{}' in its place: {}", file.path, error.message());
}

}  // namespace thimble
