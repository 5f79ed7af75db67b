// Documents in rows: whole, apart, each once, and files that are not as they should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/field.h"
#include "base/number/philox.h"
#include "data/dataset.h"
#include "data/fingerprint.h"
#include "data/format/document_file.h"
#include "data/marked_labels.h"
#include "data/order/first_fit.h"
#include "support/document_files.h"

namespace thimble {
namespace {

constexpr int64_t kVocabulary = 50;

// As `--packing off` types it.
DataSettings unpacked() {
  DataSettings settings;
  OwnSettings& own = settings["documents"];
  for (const DatasetDef* set : all_datasets()) {
    if (set->name != "documents") continue;
    Fields fields;
    set->fields(own, fields);
    for (const Field& field : std::move(fields).take()) field.set(false);
  }
  return settings;
}

std::unique_ptr<Dataset> opened(const TemporaryFolder& folder, int64_t length, uint64_t seed = 1,
                                DataSettings settings = {}) {
  return open_dataset("documents",
                      {.folder = folder.path(),
                       .wanted = {{.name = "tokens", .dtype = DType::i32, .shape = {length}}},
                       .seed = seed,
                       .settings = std::move(settings)});
}

using Row = std::vector<std::vector<int32_t>>;  // by field

Row read_row(const Dataset& data, Split split, int64_t index) {
  Row row;
  std::vector<RecordPart> parts;
  for (size_t field = 0; field < data.info().fields.size(); ++field) {
    row.emplace_back(static_cast<size_t>(data.length(split, index, field)), -77);
  }
  for (std::vector<int32_t>& field : row) {
    parts.push_back({reinterpret_cast<std::byte*>(field.data()), 4, 4, std::ssize(field)});
  }
  data.read(split, index, parts);
  return row;
}

int64_t counted_of(const Dataset& data, Split split, int64_t index) {
  return dynamic_cast<const MarkedLabels&>(data).counted(split, index);
}

TEST(FirstFit, IsTheFirstRowWithRoomForEach) {
  for (const int64_t room : {1, 7, 100}) {
    for (const int64_t count : {0, 1, 2, 3, 64, 65, 500}) {
      std::vector<int64_t> lengths;
      for (int64_t i = 0; i < count; ++i) {
        const PhiloxCounter words = philox({static_cast<uint32_t>(i), 3, 0, 0}, philox_key(9));
        lengths.push_back(1 + words[0] % static_cast<uint32_t>(room));
      }
      const auto turned = [&](int64_t i) { return count - 1 - i; };
      const auto length = [&](int64_t record) { return lengths[static_cast<size_t>(record)]; };
      const FirstFit packed(count, room, turned, length);
      std::vector<std::vector<uint32_t>> rows;  // one record after the other, row by row
      std::vector<int64_t> left;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t record = turned(i);
        size_t row = 0;
        while (row < rows.size() && left[row] < length(record)) ++row;
        if (row == rows.size()) rows.emplace_back(), left.push_back(room);
        rows[row].push_back(static_cast<uint32_t>(record));
        left[row] -= length(record);
      }
      ASSERT_EQ(packed.rows(), std::ssize(rows));
      for (size_t row = 0; row < rows.size(); ++row) {
        const auto got = packed.records(static_cast<int64_t>(row));
        EXPECT_TRUE(std::ranges::equal(got, rows[row])) << "row " << row;
      }
    }
  }
}

TEST(Documents, RowsHoldWholeDocumentsApart) {
  const TemporaryFolder folder;
  const auto train = some_documents({5, 9, 1, 3, 16, 2, 7, 7, 4, 11}, kVocabulary);
  const auto test = some_documents({6, 3, 12}, kVocabulary);
  write_documents(folder.path(), kVocabulary, train, test);
  const auto data = opened(folder, 16);
  std::multiset<std::vector<int32_t>> seen;
  for (const Split split : {Split::train, Split::test}) {
    for (int64_t index = 0; index < data->info().count(split); ++index) {
      const Row row = read_row(*data, split, index);
      ASSERT_EQ(row.size(), 3U);
      int64_t counted = 0;
      for (size_t i = 0; i < 16; ++i) counted += row[1][i] >= 0 ? 1 : 0;
      EXPECT_EQ(counted_of(*data, split, index), counted);
      for (size_t at = 0; at < 16;) {
        ASSERT_EQ(row[2][at], at) << "a document begins where it says";
        size_t end = at + 1;
        while (end < 16 && row[2][end] == static_cast<int32_t>(at)) ++end;
        const std::vector<int32_t> tokens(row[0].begin() + static_cast<int64_t>(at),
                                          row[0].begin() + static_cast<int64_t>(end));
        const std::vector<int32_t> targets(row[1].begin() + static_cast<int64_t>(at),
                                           row[1].begin() + static_cast<int64_t>(end));
        const auto& all = split == Split::train ? train : test;
        const auto found = std::ranges::find(all, tokens, &TestDocument::tokens);
        if (found != all.end()) {
          seen.insert(tokens);
          for (size_t i = 0; i < targets.size(); ++i) {
            const bool counts = i + 1 < tokens.size() && found->counted[i + 1] != 0;
            EXPECT_EQ(targets[i], counts ? tokens[i + 1] : -1);
          }
        } else {
          EXPECT_EQ(tokens, std::vector<int32_t>{0}) << "padding, a place at a time";
          EXPECT_EQ(targets, std::vector<int32_t>{-1});
        }
        at = end;
      }
    }
  }
  std::multiset<std::vector<int32_t>> all;
  for (const auto* part : {&train, &test}) {
    for (const TestDocument& one : *part) all.insert(one.tokens);
  }
  EXPECT_EQ(seen, all);
  EXPECT_EQ(data->info().test_count, 2) << "6 and 3 in one row, 12 in another";
}

TEST(Documents, TheSeedDecidesTheRows) {
  const TemporaryFolder folder;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 100; ++i) lengths.push_back(1 + i * 7 % 13);
  write_documents(folder.path(), kVocabulary, some_documents(lengths, kVocabulary));
  const auto rows = [&](uint64_t seed) {
    const auto data = opened(folder, 20, seed);
    std::vector<Row> all;
    for (int64_t i = 0; i < data->info().train_count; ++i) {
      all.push_back(read_row(*data, Split::train, i));
    }
    return all;
  };
  EXPECT_EQ(rows(3), rows(3));
  EXPECT_NE(rows(3), rows(4));
  EXPECT_EQ(read_row(*opened(folder, 20, 3), Split::test, 0),
            read_row(*opened(folder, 20, 4), Split::test, 0));
}

TEST(Documents, AreARecordEachWithoutPacking) {
  const TemporaryFolder folder;
  const auto documents = some_documents({5, 9, 1, 3}, kVocabulary);
  write_documents(folder.path(), kVocabulary, documents);
  const auto data = opened(folder, 6, 1, unpacked());
  EXPECT_EQ(data->info().train_count, 3);
  EXPECT_EQ(data->info().test_count, 1) << "the last twentieth, one at least";
  EXPECT_EQ(find_field(data->info().fields, "begins"), nullptr);
  EXPECT_EQ(data->info().fields[0].shape, Shape({9}));
  for (int64_t i = 0; i < 3; ++i) {
    const TestDocument& one = documents[static_cast<size_t>(i)];
    const Row row = read_row(*data, Split::train, i);
    EXPECT_EQ(row[0], one.tokens);
    int64_t counted = 0;
    for (size_t at = 0; at < one.tokens.size(); ++at) {
      const bool counts = at + 1 < one.tokens.size() && one.counted[at + 1] != 0;
      EXPECT_EQ(row[1][at], counts ? one.tokens[at + 1] : -1);
      counted += counts ? 1 : 0;
    }
    EXPECT_EQ(counted_of(*data, Split::train, i), counted);
  }
  EXPECT_EQ(read_row(*data, Split::test, 0)[0], documents[3].tokens);
}

TEST(Documents, OtherBytesAreOtherData) {
  const TemporaryFolder folder;
  auto train = some_documents({5, 9, 4}, kVocabulary);
  const auto test = some_documents({3}, kVocabulary);
  const auto fingerprint = [&](const std::string& tokenizer = "abc") {
    write_documents(folder.path(), kVocabulary, train, test, tokenizer);
    return fingerprint_of(opened(folder, 16)->info());
  };
  const auto before = fingerprint();
  EXPECT_EQ(difference_of_data(before, fingerprint()), "");
  EXPECT_NE(difference_of_data(before, fingerprint("other")), "");
  train[1].counted[3] ^= 1;  // a mark alone
  EXPECT_NE(difference_of_data(before, fingerprint()), "");
}

// Each is refused with the name of the file, and nothing else is thrown.
class Malformed : public testing::Test {
 protected:
  void SetUp() override {
    write_documents(folder_.path(), kVocabulary, some_documents({5, 9, 4}, kVocabulary));
    bytes_ = slurp(folder_ / "train.documents");
  }
  template <class T>
  void put(size_t at, T number) {
    std::memcpy(bytes_.data() + at, &number, sizeof number);
  }
  std::string refusal(const std::string& file = "train.documents", int64_t length = 16) {
    if (file == "train.documents") spill(folder_ / file, bytes_);
    try {
      opened(folder_, length);
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "was opened";
    return "";
  }
  const TemporaryFolder folder_;
  std::string bytes_;
};

constexpr size_t kOffsets = 24, kTokens = kOffsets + 4 * 8, kMarks = kTokens + 18 * 4;

TEST_F(Malformed, FilesAreRefusedByName) {
  const std::string sound = bytes_;
  ASSERT_EQ(sound.size(), kMarks + 18);
  const auto with = [&](size_t at, auto number) {
    bytes_ = sound;
    put(at, number);
    return refusal();
  };
  EXPECT_NE(with(0, 'x').find("thimdocs"), std::string::npos);
  EXPECT_NE(with(8, uint32_t{2}).find("version 2"), std::string::npos);
  with(12, uint32_t{1});
  with(16, uint64_t{0});
  with(16, uint64_t{2});
  with(16, uint64_t{1} << 62);
  with(16, ~uint64_t{0});
  with(kOffsets, uint64_t{1});
  with(kOffsets + 8, uint64_t{0});
  with(kOffsets + 8, uint64_t{14});  // as far as the next
  with(kOffsets + 8, ~uint64_t{0});
  with(kOffsets + 24, uint64_t{19});
  EXPECT_NE(with(kTokens + 4, int32_t{50}).find("token 1 is 50"), std::string::npos);
  with(kTokens + 4, int32_t{-1});
  with(kMarks + 17, uint8_t{2});
  for (const size_t size : {size_t{0}, size_t{23}, kOffsets, kTokens, kMarks, sound.size() - 1}) {
    bytes_ = sound.substr(0, size);
    refusal();
  }
  bytes_ = sound + "x";
  refusal();
}

TEST_F(Malformed, DescriptionsAreRefusedByName) {
  for (const char* text :
       {"", "[]", "{}", R"({"format":2,"vocabulary":50,"tokenizer_sha256":"a"})",
        R"({"format":1,"vocabulary":0,"tokenizer_sha256":"a"})", R"({"format":1,"vocabulary":50})",
        R"({"format":1,"vocabulary":50,"tokenizer_sha256":"a","train":{"records":4}})"}) {
    spill(folder_ / "documents.json", text);
    refusal("documents.json");
  }
}

TEST_F(Malformed, DocumentsThatDoNotFitAreNamed) {
  EXPECT_NE(refusal("train.documents", 8).find("document 1 of"), std::string::npos);
  bytes_ = document_bytes(some_documents({5}, kVocabulary));
  write_documents(folder_.path(), kVocabulary, some_documents({5}, kVocabulary));
  EXPECT_NE(refusal().find("none is left to hold out"), std::string::npos);
}

}  // namespace
}  // namespace thimble
