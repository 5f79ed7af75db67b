// Folders of documents as `thimble finetune` prepares them (data/format/document_file.h).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "file_support.h"

namespace thimble {

struct TestDocument {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> counted;
};

// The bytes of a file with these documents.
inline std::string document_bytes(const std::vector<TestDocument>& documents) {
  std::string bytes = "thimdocs";
  const auto put = [&]<class T>(T number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(uint32_t{1});
  put(uint32_t{0});
  put(uint64_t{documents.size()});
  uint64_t offset = 0;
  put(offset);
  for (const TestDocument& one : documents) put(offset += one.tokens.size());
  for (const TestDocument& one : documents) {
    for (const int32_t token : one.tokens) put(token);
  }
  for (const TestDocument& one : documents) {
    for (const uint8_t mark : one.counted) put(mark);
  }
  return bytes;
}

// Documents of these lengths: tokens from 1 on below `vocabulary`, of which two in three count.
inline std::vector<TestDocument> some_documents(const std::vector<int64_t>& lengths,
                                                int64_t vocabulary) {
  std::vector<TestDocument> documents;
  int64_t at = 0;
  for (const int64_t length : lengths) {
    TestDocument& one = documents.emplace_back();
    for (int64_t i = 0; i < length; ++i, ++at) {
      one.tokens.push_back(static_cast<int32_t>(1 + (at * 7 + at / 5) % (vocabulary - 1)));
      one.counted.push_back(at % 3 != 1 ? 1 : 0);
    }
  }
  return documents;
}

inline void write_documents(const std::string& folder, int64_t vocabulary,
                            const std::vector<TestDocument>& train,
                            const std::vector<TestDocument>& test = {},
                            const std::string& tokenizer = "abc") {
  spill(folder + "/documents.json",
        fmt::format(R"({{"format":1,"vocabulary":{},"tokenizer_sha256":"{}","loss_on":"all",)"
                    R"("train":{{"records":{}}}}})",
                    vocabulary, tokenizer, train.size()));
  spill(folder + "/train.documents", document_bytes(train));
  if (!test.empty()) spill(folder + "/test.documents", document_bytes(test));
}

}  // namespace thimble
