#include "runs/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>

#include "base/error.h"
#include "base/io/crc32c.h"

namespace thimble {
namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <class Number>
void append(std::string& out, Number number) {  // little-endian
  for (size_t i = 0; i < sizeof(Number); ++i) {
    out += static_cast<char>((static_cast<uint64_t>(number) >> (8 * i)) & 0xff);
  }
}

// A checksum of bytes that hold checksums themselves is weak; readers expect this one.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Protocol buffers' wire format.
class Message {
 public:
  Message& whole(int field, uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    append(bytes_, std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& single(int field, float value) {
    key(field, 5);
    append(bytes_, std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& inner) { return bytes(field, inner.bytes_); }
  const std::string& text() const { return bytes_; }

 private:
  void key(int field, int kind) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<unsigned>(kind));
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5,
              kSessionLog = 7;  // of Event
constexpr int kSummaryValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr uint64_t kStart = 1;

Message event(double time, int64_t step) {
  Message message;
  message.real(kWallTime, time).whole(kStep, static_cast<uint64_t>(step));
  return message;
}

}  // namespace

std::string framed_record(std::string_view bytes) {
  std::string record;
  append(record, static_cast<uint64_t>(bytes.size()));
  append(record, masked_crc(record));
  record += bytes;
  append(record, masked_crc(bytes));
  return record;
}

std::string scalars_event(double time, int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  Message summary;
  for (const auto& [tag, value] : scalars) {
    Message scalar;
    scalar.bytes(kTag, tag).single(kSimpleValue, static_cast<float>(value));
    summary.message(kSummaryValue, scalar);
  }
  return event(time, step).message(kSummary, summary).text();
}

EventFile::EventFile(const std::string& folder, int64_t resumed_at) {
  ensure_directory(folder);
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  const double now = wall_time();
  // Readers take the files of a folder in the order of their names.
  for (int again = 0; !file_; ++again) {
    const std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder,
                                         static_cast<int64_t>(now), host.data(), ::getpid(), again);
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    user_check(file.get() >= 0 || errno == EEXIST, "cannot write to '{}': {}", path,
               why_refused(errno));
    if (file.get() >= 0) file_.emplace(std::move(file), path);
  }
  Message first;
  first.real(kWallTime, now).bytes(kFileVersion, "brain.Event:2");
  file_->add(framed_record(first.text()));
  if (resumed_at > 0) {
    Message start;
    start.whole(kStatus, kStart);
    file_->add(framed_record(event(now, resumed_at + 1).message(kSessionLog, start).text()));
  }
  flush();
}

void EventFile::add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  file_->add(framed_record(scalars_event(wall_time(), step, scalars)));
}

}  // namespace thimble
