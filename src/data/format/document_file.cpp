#include "data/format/document_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/io/sha256.h"

namespace thimble {
namespace {

constexpr char kDocumentMagic[8] = {'t', 'h', 'i', 'm', 'd', 'o', 'c', 's'};
constexpr uint32_t kDocumentVersion = 1;
constexpr int64_t kNumbersAtOnce = 65536;
constexpr const char* kPrepareAgain = "prepare it again with `thimble finetune`";

struct DocumentHeader {
  char magic[8];
  uint32_t version, reserved;
  uint64_t records;
};
static_assert(sizeof(DocumentHeader) == 24);

// body(numbers, index of the first) for blocks of `count` numbers from byte `begin` on.
template <class T, class Body>
void for_each_block(const ReadFile& file, int64_t begin, int64_t count, Sha256& hash,
                    const Body& body) {
  std::vector<T> block(static_cast<size_t>(std::min(kNumbersAtOnce, count)));
  for (int64_t at = 0; at < count; at += kNumbersAtOnce) {
    const std::span<T> part(block.data(),
                            static_cast<size_t>(std::min(kNumbersAtOnce, count - at)));
    file.read_at(begin + at * static_cast<int64_t>(sizeof(T)), std::as_writable_bytes(part));
    hash.update(std::as_bytes(part));
    body(std::span<const T>(part), at);
  }
}

}  // namespace

DocumentFile::DocumentFile(const std::string& path, int64_t vocabulary) : file_(path) {
  DocumentHeader header{};
  user_check(
      file_.size() >= static_cast<int64_t>(sizeof header),
      "'{}' is truncated or no file of documents: it has {} bytes, fewer than its header; {}", path,
      file_.size(), kPrepareAgain);
  file_.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  user_check(std::ranges::equal(header.magic, kDocumentMagic),
             "'{}' is no file of documents: it does not begin with \"thimdocs\"; {}", path,
             kPrepareAgain);
  user_check(header.version == kDocumentVersion && header.reserved == 0,
             "'{}' is a file of documents of version {}, and {} is the one that is read; {}", path,
             header.version, kDocumentVersion, kPrepareAgain);
  Sha256 hash;
  hash.update(std::as_bytes(std::span(&header, 1)));
  const auto behind = static_cast<uint64_t>(file_.size()) - sizeof header;
  user_check(header.records >= 1 && header.records < UINT32_MAX &&
                 header.records < behind / sizeof(uint64_t),
             "'{}' is truncated or empty: it states {} documents and has {} bytes for them; {}",
             path, header.records, behind, kPrepareAgain);
  const auto records = static_cast<int64_t>(header.records);
  for_each_block<uint64_t>(
      file_, sizeof header, records + 1, hash, [&](std::span<const uint64_t> part, int64_t) {
        for (const uint64_t offset : part) {
          const bool rises = offsets_.empty() ? offset == 0
                                              : offset > static_cast<uint64_t>(offsets_.back()) &&
                                                    offset <= behind;
          user_check(rises, "'{}' is damaged: document {} has no tokens, or is not in the file; {}",
                     path, std::max<int64_t>(std::ssize(offsets_) - 1, 0), kPrepareAgain);
          offsets_.push_back(static_cast<int64_t>(offset));
        }
      });
  begin_ = static_cast<int64_t>(sizeof header) + (records + 1) * 8;
  const int64_t bytes = begin_ + tokens() * 5;
  user_check(file_.size() == bytes,
             "'{}' is truncated or oversized: {} documents of {} tokens take {} bytes, and it has "
             "{}; {}",
             path, records, tokens(), bytes, file_.size(), kPrepareAgain);
  check_tokens(vocabulary, hash);
  check_marks(hash);
  sha256_ = hash.hex();
}

void DocumentFile::check_tokens(int64_t vocabulary, Sha256& hash) {
  for_each_block<int32_t>(
      file_, begin_, tokens(), hash, [&](std::span<const int32_t> part, int64_t first) {
        for (size_t i = 0; i < part.size(); ++i) {
          user_check(part[i] >= 0 && part[i] < vocabulary,
                     "'{}': token {} is {}, and the vocabulary has {}; {}", path(),
                     first + static_cast<int64_t>(i), part[i], vocabulary, kPrepareAgain);
        }
      });
}

void DocumentFile::check_marks(Sha256& hash) {
  counted_.assign(offsets_.size() - 1, 0);
  size_t record = 0;
  for_each_block<uint8_t>(file_, begin_ + tokens() * 4, tokens(), hash,
                          [&](std::span<const uint8_t> part, int64_t first) {
                            for (size_t i = 0; i < part.size(); ++i) {
                              const int64_t at = first + static_cast<int64_t>(i);
                              user_check(part[i] <= 1,
                                         "'{}': the mark of token {} is {}, and it is 0 or 1; {}",
                                         path(), at, part[i], kPrepareAgain);
                              while (at >= offsets_[record + 1]) ++record;
                              if (at > offsets_[record]) counted_[record] += part[i];
                            }
                          });
}

void DocumentFile::read_tokens(int64_t record, std::span<int32_t> out) const {
  internal_check(std::ssize(out) == length(record), "DocumentFile: another length");
  const int64_t at = offsets_[static_cast<size_t>(record)];
  file_.read_at(begin_ + at * 4, std::as_writable_bytes(out));
}

void DocumentFile::read_targets(int64_t record, std::span<int32_t> out) const {
  internal_check(std::ssize(out) == length(record), "DocumentFile: another length");
  const int64_t at = offsets_[static_cast<size_t>(record)];
  const std::span<int32_t> predicted = out.first(out.size() - 1);
  file_.read_at(begin_ + (at + 1) * 4, std::as_writable_bytes(predicted));
  out.back() = -1;
  std::array<uint8_t, 4096> marks;
  for (size_t i = 0; i < predicted.size(); i += marks.size()) {
    const auto part = std::span(marks).first(std::min(marks.size(), predicted.size() - i));
    file_.read_at(begin_ + tokens() * 4 + at + 1 + static_cast<int64_t>(i),
                  std::as_writable_bytes(part));
    for (size_t e = 0; e < part.size(); ++e) {
      if (part[e] == 0) predicted[i + e] = -1;
    }
  }
}

}  // namespace thimble
