// Runs the real program as a user would, and looks at what comes back.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../file_support.h"

namespace thimble {

struct Outcome {
  int code = -1;  // exit status; -1: ended by a signal
  int signal = 0;
  int64_t resident = 0;  // the most bytes of memory that it held
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

struct RunSettings {
  std::string folder = "/";           // where it runs
  rlim_t file_limit = RLIM_INFINITY;  // no file may grow beyond
  std::string cache = {};             // of measured costs; empty: a folder that holds none
  std::string out = {};               // where output goes instead of to us; "closed": nowhere
  std::string err = {};               // likewise, messages
  std::vector<std::string> environment = {};  // "NAME=value", in place of the test's own
  rlim_t address_limit = RLIM_INFINITY;       // bytes that it may map
  bool measures = false;                      // kernels, by itself, where no times are known
  std::vector<std::string> launcher = {};     // what starts it, before its name
};

// A started program. Its output goes to files, so that nothing waits for a reader.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const RunSettings& settings = {}) {
    std::vector<std::string> words = settings.launcher;
    words.push_back(THIMBLE_PROGRAM);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // The user's own measurements must not change what tests see.
    std::vector<std::string> variables = {
        "THIMBLE_CACHE=" + (settings.cache.empty() ? folder_ / "cache" : settings.cache)};
    if (!settings.measures) variables.emplace_back("THIMBLE_CALIBRATE=off");
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with("THIMBLE_CACHE=") &&
          !std::string_view(*variable).starts_with("THIMBLE_CALIBRATE=") &&
          !is_set(settings.environment, *variable))
        variables.push_back(*variable);
    }
    variables.insert(variables.end(), settings.environment.begin(), settings.environment.end());
    std::vector<char*> envp;
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
    const std::string out = settings.out.empty() ? folder_ / "out" : settings.out;
    const std::string err = settings.err.empty() ? folder_ / "err" : settings.err;
    pid_ = fork();
    if (pid_ != 0) return;
    // In the child: nothing but system calls.
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open("/dev/null", O_RDONLY), 0);
    for (const auto& [path, fd] : {std::pair(&out, 1), std::pair(&err, 2)}) {
      const int file = *path == "closed" ? -1 : open(path->c_str(), flags, 0600);
      file < 0 ? close(fd) : dup2(file, fd);
      if (file >= 0 && file != fd) close(file);
    }
    if (chdir(settings.folder.c_str()) != 0) _exit(126);
    if (settings.file_limit != RLIM_INFINITY) {
      const rlimit limit = {settings.file_limit, settings.file_limit};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (settings.address_limit != RLIM_INFINITY) {
      const rlimit limit = {settings.address_limit, settings.address_limit};
      setrlimit(RLIMIT_AS, &limit);
    }
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  void kill() const { ::kill(pid_, SIGKILL); }
  void send(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }
  // Leaves it to wait() to pick the outcome up.
  bool ended() const {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  }

  Outcome wait() {
    int status = 0;
    rusage usage = {};
    wait4(pid_, &status, 0, &usage);
    pid_ = -1;
    Outcome outcome;
    outcome.resident = usage.ru_maxrss * 1024;
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    outcome.out = slurp(folder_ / "out");
    outcome.err = slurp(folder_ / "err");
    return outcome;
  }

 private:
  // Whether `settings` name the variable of "NAME=value".
  static bool is_set(const std::vector<std::string>& settings, std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    for (const std::string& setting : settings) {
      if (setting.starts_with(name)) return true;
    }
    return false;
  }

  TemporaryFolder folder_;
  pid_t pid_ = -1;
};

inline Outcome thimble_says(const std::vector<std::string>& arguments,
                            const RunSettings& settings = {}) {
  return Process(arguments, settings).wait();
}

// The arguments, and what is appended to them.
inline std::vector<std::string> operator+(std::vector<std::string> words,
                                          const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A mistake of the caller: exit 2, one sentence on stderr with all of `parts`, nothing on stdout.
template <class... Parts>
void expect_mistake(const Outcome& outcome, const Parts&... parts) {
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.find("thimble: ") != std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("internal error"), std::string::npos) << outcome.err;
  EXPECT_TRUE(((outcome.err.find(parts) != std::string::npos) && ...)) << outcome.err;
}

// The step of the latest checkpoint; 0: there is none.
inline int64_t latest_step(const std::string& out) {
  std::error_code error;
  const std::string name = std::filesystem::read_symlink(out + "/latest", error).string();
  return error || name.size() < 6 ? 0 : std::stoll(name.substr(5));
}

// Kills a run of `arguments` at random moments, resumes it until it is through, and returns the
// final JSON. A moment is a random step in [0, steps) being reached, and then up to 20 ms: about as
// long as a checkpoint takes to write. `kills` is how often the run was really cut off.
inline nlohmann::json killed_and_resumed(const std::vector<std::string>& arguments,
                                         const std::string& out, int64_t steps, uint32_t seed,
                                         int most_kills, int& kills) {
  std::mt19937 random(seed);
  kills = 0;
  for (;;) {
    std::error_code ignored;
    const bool begun = std::filesystem::exists(out + "/latest/state.json", ignored);
    std::vector<std::string> words = arguments + std::vector<std::string>{"--out", out, "--json"};
    if (begun) words.push_back("--resume");
    Process running(words);
    if (kills < most_kills) {
      const int64_t left = steps - latest_step(out);
      const int64_t target =
          steps - left + static_cast<int64_t>(random()) % std::max<int64_t>(1, left);
      while (latest_step(out) < target && !running.ended()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
      running.kill();
    }
    const Outcome outcome = running.wait();
    if (outcome.signal == SIGKILL) {
      ++kills;
      continue;
    }
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? outcome.json() : nlohmann::json();
  }
}

}  // namespace thimble
