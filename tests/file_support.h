// Tools for tests of files: a folder that goes away, and a look at the message of an error.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace thimble {

// Removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "thimble_test.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  // The entries directly inside, temporaries included.
  int64_t entries() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Writes plainly, unlike the code under test.
inline void spill(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), std::ssize(content));
}

// The message of the Error that `body` throws; "" when it throws none.
template <class Error, class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Whether `body` throws an Error whose message has all of `parts`.
template <class Error, class Body, class... Parts>
::testing::AssertionResult throws_saying(Body&& body, const Parts&... parts) {
  const std::string message = message_of<Error>(body);
  if (message.empty()) return ::testing::AssertionFailure() << "nothing was thrown";
  if (((message.find(parts) != std::string::npos) && ...)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the message is: " << message;
}

}  // namespace thimble
