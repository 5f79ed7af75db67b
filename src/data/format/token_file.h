// A stream of token numbers on disk, read by ranges and never resident.
//
//   raw                  │ u16 tokens                              as nanoGPT writes it
//   headed (llm.c)       │ 256 x i32: magic, version, count, 0 ... │ u16 (20240520) or u32 (20240801)
//
// Reads go through the system's page cache, not through a mapping: pages of a mapping would count
// as this process's memory, and a file that is cut while it is mapped ends the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/io/file.h"

namespace thimble {

class TokenFile {
 public:
  // UserError, naming the file, where it is truncated, oversized or of neither format.
  explicit TokenFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t count() const { return count_; }
  int64_t token_bytes() const { return token_bytes_; }
  // Tokens from `first` on. Allocates nothing. REQUIRES: they are there.
  void read(int64_t first, std::span<int32_t> out) const;

 private:
  ReadFile file_;
  int64_t begin_ = 0;  // of the tokens
  int64_t count_ = 0;
  int64_t token_bytes_ = 2;
};

// Tokens as they come, u16 or u32, with llm.c's header or raw.
class TokenFileWriter {
 public:
  // `vocabulary`: all tokens are below. Above 65,536 they take four bytes, which raw files have
  // not.
  TokenFileWriter(const std::string& path, int64_t vocabulary, bool raw);

  void write(std::span<const int32_t> tokens);
  const std::string& path() const { return path_; }
  // All of them, in the file that will be at path(); it is left to the caller to commit it.
  // UserError where there are none, or more than the format holds. REQUIRES: called at most once.
  void finish(AtomicFile& file);
  int64_t count() const { return count_; }

 private:
  void flush();

  std::string path_;
  SpoolFile spool_;
  bool raw_;
  int64_t token_bytes_;
  int64_t count_ = 0;
  std::string buffer_;
};

}  // namespace thimble
