// Documents as tokens on disk, with a mark at each that counts in a loss: as `thimble finetune`
// prepares them, read by ranges and never resident. Little endian:
//
//   "thimdocs" │ u32 version = 1 │ u32 0 │ u64 records │ u64 offsets[records + 1], in tokens, from 0
//   i32 tokens[offsets[records]] │ u8 counted[offsets[records]]
//
// A token that is marked counts where it is to be predicted, which the first of a document never
// is. Resident are an offset and a count for each record: twelve bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/io/file.h"

namespace thimble {

class Sha256;

class DocumentFile {
 public:
  // Reads all of it once. UserError, naming the file, where it is truncated, oversized, or of
  // another format or version. The same for offsets that do not rise, tokens that are not below
  // `vocabulary`, and marks that are neither 0 nor 1.
  DocumentFile(const std::string& path, int64_t vocabulary);

  const std::string& path() const { return file_.path(); }
  const std::string& sha256() const { return sha256_; }  // of the whole file
  int64_t records() const { return static_cast<int64_t>(counted_.size()); }
  int64_t tokens() const { return offsets_.back(); }
  int64_t length(int64_t record) const {
    const auto at = static_cast<size_t>(record);
    return offsets_[at + 1] - offsets_[at];
  }
  // Tokens of a record that are to be predicted and count.
  int64_t counted(int64_t record) const { return counted_[static_cast<size_t>(record)]; }

  // All tokens of a record. Allocates nothing. REQUIRES: out.size() == length(record).
  void read_tokens(int64_t record, std::span<int32_t> out) const;
  // The target of each position: the token behind it, or -1 where that does not count or there is
  // none. REQUIRES: the same.
  void read_targets(int64_t record, std::span<int32_t> out) const;

 private:
  void check_tokens(int64_t vocabulary, Sha256& hash);
  void check_marks(Sha256& hash);

  ReadFile file_;
  int64_t begin_ = 0;             // of the tokens, in bytes
  std::vector<int64_t> offsets_;  // of each record, and the end
  std::vector<uint32_t> counted_;
  std::string sha256_;
};

}  // namespace thimble
