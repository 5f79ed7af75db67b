#include "data/format/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"

namespace thimble {
namespace {

constexpr size_t kBuffer = size_t{64} * 1024;
// No deflate stream is tighter (zlib's "technical details"); 64 KiB covers small files.
constexpr int64_t kBestRatio = 1032;

// zlib's state for one gzip stream.
class Inflater {
 public:
  Inflater() {
    const int code = inflateInit2(&stream, 15 + 16);  // largest window, gzip wrapper
    internal_check(code == Z_OK, "gunzip: zlib does not start");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }

  z_stream stream = {};
};

[[noreturn]] void corrupt(const std::string& path, std::string_view why) {
  user_error("'{}' cannot be unpacked: {}; get a fresh copy of it", path, why);
}

// Takes the unpacked bytes in order: holds the first few back until they tell the whole size.
class BoundedSpool {
 public:
  BoundedSpool(const ReadFile& packed, size_t prefix,
               const std::function<int64_t(std::span<const std::byte>)>& size_from)
      : packed_(packed), size_from_(size_from), wanted_prefix_(prefix), spool_(packed.path()) {}

  void take(std::span<const std::byte> bytes) {
    if (!size_) {
      const size_t more = std::min(bytes.size(), wanted_prefix_ - prefix_.size());
      prefix_.insert(prefix_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(more));
      bytes = bytes.subspan(more);
      if (prefix_.size() < wanted_prefix_) return;
      settle_size();
    }
    put(bytes);
  }

  ReadFile finish() {
    if (!size_) settle_size();
    user_check(unpacked_ == *size_,
               "'{}' is truncated: it unpacks to {} bytes where its header wants {}; get a fresh "
               "copy of it",
               packed_.path(), unpacked_, *size_);
    return std::move(spool_).finish();
  }

 private:
  void settle_size() {
    size_ = size_from_(prefix_);
    user_check(*size_ / kBestRatio <= packed_.size() + static_cast<int64_t>(kBuffer),
               "'{}' is truncated: its {} bytes cannot hold the {} bytes that its header "
               "promises; get a fresh copy of it",
               packed_.path(), packed_.size(), *size_);
    put(prefix_);
  }

  void put(std::span<const std::byte> bytes) {
    unpacked_ += std::ssize(bytes);
    user_check(unpacked_ <= *size_,
               "'{}' is oversized: it unpacks to more than the {} bytes that its header wants; "
               "get a fresh copy of it",
               packed_.path(), *size_);
    spool_.write(bytes);
  }

  const ReadFile& packed_;
  const std::function<int64_t(std::span<const std::byte>)>& size_from_;
  size_t wanted_prefix_;
  SpoolFile spool_;
  std::vector<std::byte> prefix_;
  std::optional<int64_t> size_;
  int64_t unpacked_ = 0;
};

}  // namespace

ReadFile gunzip(const ReadFile& packed, size_t prefix,
                const std::function<int64_t(std::span<const std::byte>)>& size_from) {
  std::vector<std::byte> in(kBuffer), out(kBuffer);
  BoundedSpool spool(packed, prefix, size_from);
  Inflater inflater;
  z_stream& stream = inflater.stream;
  bool ended = false;  // between two members, or after the last
  for (int64_t offset = 0; offset < packed.size();) {
    const size_t length =
        static_cast<size_t>(std::min<int64_t>(std::ssize(in), packed.size() - offset));
    packed.read_at(offset, std::span(in).first(length));
    offset += static_cast<int64_t>(length);
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(length);
    bool out_full = true;
    while (stream.avail_in > 0 || out_full) {
      if (ended) {
        if (stream.avail_in == 0) break;
        inflateReset(&stream);
        ended = false;
      }
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      const int code = inflate(&stream, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        corrupt(packed.path(), stream.msg != nullptr ? stream.msg : "it is no gzip file");
      }
      ended = code == Z_STREAM_END;
      out_full = stream.avail_out == 0;
      spool.take(std::span(out).first(out.size() - stream.avail_out));
    }
  }
  if (!ended) corrupt(packed.path(), "it is truncated in the middle of its data");
  return spool.finish();
}

}  // namespace thimble
