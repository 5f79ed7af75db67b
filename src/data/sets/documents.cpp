// Documents as `thimble finetune` prepares them (data/format/document_file.h): train.documents,
// test.documents, and documents.json, which says how many tokens there are to choose from and by
// which tokenizer. Without test.documents the last twentieth of the records is held out, one at
// least.
//
//   tokens   the documents of a row, one behind the other      pad 0
//   targets  the token behind each that counts, else -1        pad -1, which no loss counts
//   begins   where the document of each token begins           padding is a document each
//
// Packing: rows of the model's length take whole documents by first fit, in an order that the run's
// seed decides, the same on every rank. That is done once: every epoch has the same rows, in an
// order of its own, so an epoch has a fixed number of steps, and a row is read wherever it stands.
// The rows of a test are packed in the order of the file, whatever the seed.
//
// Without packing a record is a document: fields of its length, and no `begins`.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/field.h"
#include "base/io/json.h"
#include "data/dataset.h"
#include "data/format/document_file.h"
#include "data/marked_labels.h"
#include "data/order/first_fit.h"
#include "data/order/shuffle.h"

namespace thimble {
namespace {

constexpr std::string_view kPrepare = "prepare it with `thimble finetune FOLDER --data FILE.jsonl`";
constexpr uint64_t kPackingOrder = ~uint64_t{0};  // the epoch of the permutation: none is so late
constexpr int64_t kUsualLength = 1024;

struct Own {
  bool packing = true;
};

void fields(OwnSettings& own, Fields& list) {
  list.on_off(
      "packing", own.of<Own>().packing,
      {.help = "Rows hold several documents, apart in attention",
       .more = "`documents`: rows of the model's length hold as many whole documents as fit, "
               "apart in attention; off: a document a row",
       .affects = affects::all});
}

struct Description {
  int64_t vocabulary = 0;
  std::string tokenizer_sha256;
  std::optional<int64_t> train, test;  // records
};

std::optional<int64_t> records_in(const nlohmann::json& about, const char* split) {
  if (!about.contains(split) || !about[split].is_object()) return std::nullopt;
  const nlohmann::json& part = about[split];
  const bool stated = part.contains("records") && part["records"].is_number_integer();
  return stated ? std::optional(part["records"].get<int64_t>()) : std::nullopt;
}

Description read_description(const std::string& path) {
  const nlohmann::json about = read_json(path, "a description of documents");
  const auto whole = [&](const char* name) {
    return about.contains(name) && about[name].is_number_integer() ? about[name].get<int64_t>() : 0;
  };
  user_check(about.is_object() && whole("format") == 1,
             "'{}' is no description of documents in format 1; {}", path, kPrepare);
  const int64_t vocabulary = whole("vocabulary");
  user_check(vocabulary > 0 && vocabulary < INT32_MAX && about.contains("tokenizer_sha256") &&
                 about["tokenizer_sha256"].is_string(),
             "'{}' is damaged: it should say how large the vocabulary is, and the sha256 of the "
             "tokenizer; {}",
             path, kPrepare);
  return {vocabulary, about["tokenizer_sha256"].get<std::string>(), records_in(about, "train"),
          records_in(about, "test")};
}

// The records of a split: some that follow each other in a file, and the rows that they make.
struct Part {
  const DocumentFile* file = nullptr;
  int64_t begin = 0, count = 0;
  FirstFit packed = {};

  int64_t length(int64_t record) const { return file->length(begin + record); }
};

class Documents final : public Dataset, public MarkedLabels {
 public:
  Documents(const std::string& folder, int64_t length, bool packing, uint64_t seed)
      : room_(length), packing_(packing) {
    const std::string path = folder + "/documents.json";
    const Description about = read_description(path);
    train_file_.emplace(folder + "/train.documents", about.vocabulary);
    train_ = {.file = &*train_file_, .count = train_file_->records()};
    if (exists(folder + "/test.documents")) {
      test_file_.emplace(folder + "/test.documents", about.vocabulary);
      test_ = {.file = &*test_file_, .count = test_file_->records()};
    } else {
      user_check(!about.test,
                 "'{}' states documents to test on, and there is no test.documents; {}", path,
                 kPrepare);
      user_check(train_.count >= 2,
                 "'{}' has one document alone, and none is left to hold out; add some, or a "
                 "test.documents",
                 train_file_->path());
      const int64_t held = std::max<int64_t>(1, train_.count / 20);
      train_.count -= held;
      test_ = {.file = &*train_file_, .begin = train_.count, .count = held};
    }
    check_stated(path, about.train, *train_file_);
    if (test_file_) check_stated(path, about.test, *test_file_);
    for (const Part& split : {train_, test_}) check_counted(split);
    info_ = {.name = "documents",
             .train_count = train_.count,
             .test_count = test_.count,
             .train_sha256 = train_file_->sha256(),
             .test_sha256 = test_file_ ? test_file_->sha256() : std::string(),
             .vocabulary_sha256 = about.tokenizer_sha256};
    if (packing) {
      pack(seed);
    } else {
      room_ = std::max(longest(train_), longest(test_));
    }
    name_fields(about.vocabulary);
  }

  const DatasetInfo& info() const override { return info_; }

  int64_t length(Split split, int64_t index, size_t) const override {
    return packing_ ? room_ : part(split).length(index);
  }

  int64_t counted(Split split, int64_t index) const override {
    const Part& of = part(split);
    if (!packing_) return of.file->counted(of.begin + index);
    int64_t sum = 0;
    for (const uint32_t record : of.packed.records(index)) {
      sum += of.file->counted(of.begin + record);
    }
    return sum;
  }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const Part& of = part(split);
    if (!packing_) {
      read_document(of, index, 0, of.length(index), parts);
      return;
    }
    int64_t at = 0;
    for (const uint32_t record : of.packed.records(index)) {
      const int64_t length = of.length(record);
      read_document(of, record, at, length, parts);
      at += length;
    }
    fill_rest(parts, at);
  }

 private:
  const Part& part(Split split) const { return split == Split::train ? train_ : test_; }

  static void check_stated(const std::string& path, std::optional<int64_t> stated,
                           const DocumentFile& file) {
    user_check(!stated || *stated == file.records(),
               "'{}' states {} documents, and '{}' has {}; {}", path, stated.value_or(0),
               file.path(), file.records(), kPrepare);
  }

  // A loss over none would be 0, which no model is beyond.
  static void check_counted(const Part& of) {
    int64_t counted = 0;
    for (int64_t i = 0; i < of.count; ++i) counted += of.file->counted(of.begin + i);
    user_check(counted > 0,
               "no token counts in the loss in documents {} to {} of '{}'; prepare data with "
               "answers, or with --loss-on all",
               of.begin, of.begin + of.count - 1, of.file->path());
  }

  static int64_t longest(const Part& of) {
    int64_t most = 0;
    for (int64_t i = 0; i < of.count; ++i) most = std::max(most, of.length(i));
    return most;
  }

  void pack(uint64_t seed) {
    for (Part* of : {&train_, &test_}) {
      for (int64_t i = 0; i < of->count; ++i) {
        user_check(of->length(i) <= room_,
                   "document {} of '{}' has {} tokens, and a row has {}; choose a longer --length, "
                   "or prepare the data with a shorter one",
                   of->begin + i, of->file->path(), of->length(i), room_);
      }
      const bool shuffled = of == &train_;
      of->packed = FirstFit(
          of->count, room_,
          [&](int64_t i) { return shuffled ? permuted(i, of->count, seed, kPackingOrder) : i; },
          [&](int64_t record) { return of->length(record); });
    }
    info_.train_count = train_.packed.rows();
    info_.test_count = test_.packed.rows();
  }

  void name_fields(int64_t vocabulary) {
    const auto add = [&](const char* name, int64_t limit, double pad) {
      info_.fields.push_back({.name = name,
                              .dtype = DType::i32,
                              .shape = {room_},
                              .limit = limit,
                              .pad = pad,
                              .variable = !packing_});
    };
    add("tokens", vocabulary, 0);
    add("targets", vocabulary, -1);
    if (packing_) add("begins", room_, 0);
  }

  static void read_document(const Part& of, int64_t record, int64_t at, int64_t length,
                            std::span<const RecordPart> parts) {
    const auto entries = [&](size_t field) {
      return parts[field].all<int32_t>().subspan(static_cast<size_t>(at),
                                                 static_cast<size_t>(length));
    };
    if (parts[0].data != nullptr) of.file->read_tokens(of.begin + record, entries(0));
    if (parts[1].data != nullptr) of.file->read_targets(of.begin + record, entries(1));
    if (parts.size() > 2 && parts[2].data != nullptr) {
      std::ranges::fill(entries(2), static_cast<int32_t>(at));
    }
  }

  // Behind the last document of a row: each place sees itself alone.
  void fill_rest(std::span<const RecordPart> parts, int64_t at) const {
    for (size_t field = 0; field < parts.size(); ++field) {
      if (parts[field].data == nullptr) continue;
      const auto rest = parts[field].all<int32_t>().subspan(static_cast<size_t>(at));
      if (field == 2) {
        std::iota(rest.begin(), rest.end(), static_cast<int32_t>(at));
      } else {
        std::ranges::fill(rest, static_cast<int32_t>(info_.fields[field].pad));
      }
    }
  }

  int64_t room_;  // tokens of a row; without packing, of the longest document
  const bool packing_;
  std::optional<DocumentFile> train_file_, test_file_;
  Part train_, test_;
  DatasetInfo info_;
};

std::unique_ptr<Dataset> open(const DataRequest& request) {
  const RecordField* wanted = find_field(request.wanted, "tokens");
  const bool sized = wanted != nullptr && wanted->shape.rank() == 1 && wanted->shape[0] > 0;
  return std::make_unique<Documents>(request.folder, sized ? wanted->shape[0] : kUsualLength,
                                     request.own_of<Own>("documents").packing, request.seed);
}

}  // namespace

extern const DatasetDef data_documents{
    .name = "documents",
    .summary = "documents or conversations to fine-tune on, as `thimble finetune` prepares them",
    .open = open,
    .where_to_get = kPrepare,
    .fields = fields};

}  // namespace thimble
