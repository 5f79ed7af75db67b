// Linked into every test program of the copy: writes, after each test, which faults it and the processes that it
// started reached. One line a test: name, seconds, passed or failed, numbers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

namespace {

constexpr size_t kMost = 65536;

class Reach final : public testing::EmptyTestEventListener {
 public:
  Reach(unsigned char* reached, const char* log) : reached_(reached), log_(log, std::ios::app) {}

  void OnTestStart(const testing::TestInfo&) override { std::memset(reached_, 0, kMost); }
  void OnTestEnd(const testing::TestInfo& info) override {
    log_ << info.test_suite_name() << '.' << info.name() << '\t'
         << static_cast<double>(info.result()->elapsed_time()) / 1e3 << '\t'
         << (info.result()->Failed() ? "failed" : "passed") << '\t';
    for (size_t i = 0; i < kMost; ++i) {
      if (reached_[i] != 0) log_ << i << ' ';
    }
    log_ << std::endl;
  }

 private:
  unsigned char* const reached_;
  std::ofstream log_;
};

const bool listening = [] {
  const char* const path = std::getenv("THIMBLE_MUTANT_REACHED");
  const char* const log = std::getenv("THIMBLE_MUTANT_LOG");
  if (path == nullptr || log == nullptr) return false;
  const int file = open(path, O_RDWR);
  void* const bytes = mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (bytes == MAP_FAILED) return false;
  testing::UnitTest::GetInstance()->listeners().Append(
      new Reach(static_cast<unsigned char*>(bytes), log));
  return true;
}();

}  // namespace
