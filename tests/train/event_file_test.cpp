// Event files, read back by a parser that shares no code with the writer.
#include "runs/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <map>

#include "../file_support.h"
#include "base/io/crc32c.h"

namespace thimble {
namespace {

template <class T>
T number_at(const std::string& bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

uint32_t unmasked(uint32_t crc) {
  const uint32_t rotated = crc - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

// The payloads of all records, their checksums checked.
std::vector<std::string> records_in(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const auto length = number_at<uint64_t>(file, at);
    EXPECT_EQ(unmasked(number_at<uint32_t>(file, at + 8)), crc32c(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(unmasked(number_at<uint32_t>(file, at + 12 + length)), crc32c(records.back()));
    at += 16 + length;
  }
  return records;
}

struct Part {
  uint64_t number = 0;  // varints and fixed widths, as bits
  std::string bytes;
};

// The fields of a message, by number.
std::multimap<int, Part> parts_of(const std::string& message) {
  std::multimap<int, Part> parts;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    Part part;
    switch (key & 7) {
      case 0:
        part.number = varint();
        break;
      case 1:
        part.number = number_at<uint64_t>(message, at);
        at += 8;
        break;
      case 2: {
        const uint64_t size = varint();
        part.bytes = message.substr(at, size);
        at += size;
        break;
      }
      default:
        part.number = number_at<uint32_t>(message, at);
        at += 4;
    }
    parts.emplace(static_cast<int>(key >> 3), part);
  }
  return parts;
}

TEST(EventFile, FramesARecordAsOthersDo) {
  // Length 1, then 'A': both checksums by another implementation.
  const std::string record = framed_record("A");
  ASSERT_EQ(record.size(), 17u);
  EXPECT_EQ(number_at<uint64_t>(record, 0), 1u);
  EXPECT_EQ(number_at<uint32_t>(record, 8), 0x41de7501u);
  EXPECT_EQ(number_at<uint32_t>(record, 13), 0x3e60adb3u);
}

TEST(EventFile, HoldsScalarsByStepAndTag) {
  const TemporaryFolder folder;
  {
    EventFile events(folder / "tb/run", 0);
    events.add(7, {{"train/loss", 2.5}, {"train/learning_rate", 0.1}});
    events.add(300, {{"test/accuracy", 0.75}});
  }
  const auto file = std::filesystem::directory_iterator(folder / "tb/run")->path();
  EXPECT_EQ(file.filename().string().rfind("events.out.tfevents.", 0), 0u);
  const std::vector<std::string> records = records_in(slurp(file));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(parts_of(records[0]).find(3)->second.bytes, "brain.Event:2");
  const auto event = parts_of(records[1]);
  EXPECT_EQ(event.find(2)->second.number, 7u);
  const auto time = std::bit_cast<double>(event.find(1)->second.number);
  EXPECT_GT(time, 1.5e9);  // seconds since 1970
  std::map<std::string, float> scalars;
  const auto summary = parts_of(event.find(5)->second.bytes);
  for (const auto& [field, value] : summary) {
    ASSERT_EQ(field, 1);
    const auto scalar = parts_of(value.bytes);
    scalars[scalar.find(1)->second.bytes] =
        std::bit_cast<float>(static_cast<uint32_t>(scalar.find(2)->second.number));
  }
  EXPECT_EQ(scalars,
            (std::map<std::string, float>{{"train/loss", 2.5f}, {"train/learning_rate", 0.1f}}));
  EXPECT_EQ(parts_of(records[2]).find(2)->second.number, 300u);
}

// Readers drop later steps that a killed run had written.
TEST(EventFile, ARunThatGoesOnSaysFromWhere) {
  const TemporaryFolder folder;
  { EventFile first(folder / "tb", 0); }
  std::string path;
  {
    EventFile second(folder / "tb", 40);
    path = second.path();
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "tb"), {}), 2);
  const std::vector<std::string> records = records_in(slurp(path));
  ASSERT_EQ(records.size(), 2u);
  const auto start = parts_of(records[1]);
  EXPECT_EQ(start.find(2)->second.number, 41u);
  EXPECT_EQ(parts_of(start.find(7)->second.bytes).find(1)->second.number, 1u);
}

}  // namespace
}  // namespace thimble
