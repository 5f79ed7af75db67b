#include "data/format/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "data/format/append_contents.h"

namespace thimble {
namespace {

constexpr int32_t kMagic16 = 20240520, kVersion16 = 1;
constexpr int32_t kMagic32 = 20240801, kVersion32 = 7;
constexpr int64_t kHeader = int64_t{256} * 4;
constexpr size_t kConverted = 8192;  // bytes that are converted at a time
using TokenHeader = std::array<int32_t, 256>;

template <class T>
void widen(const std::array<std::byte, kConverted>& from, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int32_t>(token);
  }
}

}  // namespace

TokenFile::TokenFile(const std::string& path) : file_(path) {
  TokenHeader header{};
  const auto there = static_cast<size_t>(std::min(file_.size(), kHeader));
  file_.read_at(0, std::as_writable_bytes(std::span(header)).first(there));
  const bool headed = header[0] == kMagic16 || header[0] == kMagic32;
  user_check(!headed || file_.size() >= kHeader,
             "'{}' is truncated: its header alone should have {} bytes, and it has {}; get a fresh "
             "copy of it",
             path, kHeader, file_.size());
  if (!headed) {
    user_check(file_.size() > 0 && file_.size() % 2 == 0,
               "'{}' is truncated or no token file: its {} bytes are not a whole number of 16-bit "
               "tokens; make it again with `thimble data tokens`",
               path, file_.size());
    count_ = file_.size() / 2;
    return;
  }
  token_bytes_ = header[0] == kMagic16 ? 2 : 4;
  const int32_t version = header[0] == kMagic16 ? kVersion16 : kVersion32;
  user_check(header[1] == version,
             "'{}' is a token file of version {}, and {} is the one that is "
             "read; make it again with `thimble data tokens`",
             path, header[1], version);
  begin_ = kHeader;
  count_ = header[2];
  const int64_t bytes = file_.size() - kHeader;
  user_check(count_ > 0 && bytes == count_ * token_bytes_,
             "'{}' is truncated or oversized: it should have {} tokens of {} bytes behind its "
             "header, and has {} bytes; get a fresh copy of it",
             path, count_, token_bytes_, bytes);
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  internal_check(first >= 0 && first + std::ssize(out) <= count_, "TokenFile: no such tokens");
  std::array<std::byte, kConverted> block;
  const size_t at_once = kConverted / static_cast<size_t>(token_bytes_);
  for (size_t at = 0; at < out.size(); at += at_once) {
    const std::span<int32_t> part = out.subspan(at, std::min(at_once, out.size() - at));
    const size_t bytes = part.size() * static_cast<size_t>(token_bytes_);
    const int64_t offset = begin_ + (first + static_cast<int64_t>(at)) * token_bytes_;
    file_.read_at(offset, std::span(block).first(bytes));
    if (token_bytes_ == 2) {
      widen<uint16_t>(block, part);
    } else {
      widen<uint32_t>(block, part);
    }
  }
}

TokenFileWriter::TokenFileWriter(const std::string& path, int64_t vocabulary, bool raw)
    : path_(path), spool_(path), raw_(raw), token_bytes_(vocabulary <= 65536 ? 2 : 4) {
  user_check(
      !raw || token_bytes_ == 2,
      "a raw token file has 16 bits a token, too few for a vocabulary of {}; leave --raw out",
      vocabulary);
}

void TokenFileWriter::write(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    const auto value = static_cast<uint32_t>(token);
    buffer_.append(reinterpret_cast<const char*>(&value), static_cast<size_t>(token_bytes_));
  }
  count_ += std::ssize(tokens);
  if (buffer_.size() >= 1 << 20) flush();
}

void TokenFileWriter::flush() {
  spool_.write(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void TokenFileWriter::finish(AtomicFile& file) {
  user_check(count_ > 0, "there is nothing to write to '{}': the text is empty", path_);
  user_check(raw_ || count_ <= INT32_MAX,
             "llm.c's format holds {} tokens at most, not {}; cut the text into several files, or "
             "use --raw",
             INT32_MAX, count_);
  flush();
  const ReadFile all = std::move(spool_).finish();
  if (!raw_) {
    TokenHeader header{};
    header[0] = token_bytes_ == 2 ? kMagic16 : kMagic32;
    header[1] = token_bytes_ == 2 ? kVersion16 : kVersion32;
    header[2] = static_cast<int32_t>(count_);
    file.write(std::as_bytes(std::span(header)));
  }
  append_contents(all, file);
}

}  // namespace thimble
