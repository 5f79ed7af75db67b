// A file from the network, whole and checked, or not at all. The `curl` program does it, so that
// the training program neither links nor loads a library for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace thimble {

struct ExpectedFile {
  int64_t bytes = 0;   // 0: not known
  std::string sha256;  // empty: not known
  std::string to_try;  // where it is another: "get it again"
};

struct RemoteFile {
  std::string url;
  std::string path;  // where it goes
  ExpectedFile wanted;
};

// Told while it arrives; `bytes` as in ExpectedFile.
using FetchProgress = std::function<void(int64_t arrived, int64_t bytes)>;

// Leaves PATH.part where it is cut off, and goes on from there the next time. UserError, saying
// what to do, where the network or the server refuses, or what arrived is not what was wanted.
void fetch(const RemoteFile& file, const FetchProgress& progress);

// UserError unless the file is what it should be. Returns its sha256.
std::string check_file(const std::string& path, const ExpectedFile& wanted);

// Runs a program of the system and waits; returns its exit status, 127 where there is none of that
// name. Its output on stderr goes to `said`, the end of it.
int run_program(const std::vector<std::string>& words, std::string& said,
                const std::function<void()>& meanwhile = {});

}  // namespace thimble
