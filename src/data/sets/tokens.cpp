// A language model's text: streams of tokens in windows of the model's length, each predicting the
// token behind it; where asked for, the windows of every epoch but the first begin elsewhere. train.bin (or NAME_train.bin, NAME_train_000001.bin, ... as llm.c has them) and, if it
// is there, val.bin likewise; else the last tenth is for testing. tokens.json says how many tokens there are
// to choose from; without it, that is one more than the largest that is seen.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/field.h"
#include "base/io/json.h"
#include "base/io/sha256.h"
#include "data/dataset.h"
#include "data/format/token_file.h"
#include "data/order/record_stream.h"
#include "data/prepare/token_text.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

struct Own {
  bool shifted = false;
};

void fields(OwnSettings& own, Fields& list) {
  list.on_off("shifted-windows", own.of<Own>().shifted,
              {.help = "Windows of a text begin elsewhere in every epoch",
               .more = "`tokens`: windows of a text begin elsewhere in every epoch but the first, "
                       "at random, so that a model learns the text, not its windows",
               .affects = affects::numerics,
               .training = true});
}

constexpr const char* kAbout = "tokens.json";

// Some tokens of a file that follow each other.
struct Stretch {
  size_t file = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t windows = 0;
};

// "train.bin", "x_train.bin", "x_train_000001.bin".
bool is_of(const std::string& name, const std::string& split) {
  if (!name.ends_with(".bin")) return false;
  const std::string stem = name.substr(0, name.size() - 4);
  return stem == split || stem.ends_with("_" + split) ||
         stem.find("_" + split + "_") != std::string::npos;
}

std::vector<TokenFile> files_of(const std::string& folder,
                                std::initializer_list<const char*> names) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    for (const char* split : names) {
      if (is_of(name, split)) paths.push_back(entry->path().string());
    }
  }
  std::ranges::sort(paths);
  std::vector<TokenFile> files;
  for (const std::string& path : paths) files.emplace_back(path);
  return files;
}

class Tokens final : public Dataset {
 public:
  Tokens(const std::string& folder, int64_t length, bool shifted, uint64_t seed)
      : length_(length), shifted_(shifted), seed_(seed) {
    files_ = files_of(folder, {"train"});
    user_check(!files_.empty(),
               "there is no train.bin in '{}'; make one with `thimble data tokens`", folder);
    const size_t trained = files_.size();
    for (TokenFile& file : files_of(folder, {"val", "valid"})) files_.push_back(std::move(file));
    const bool cut = files_.size() == trained;
    int64_t left = 0;  // of the last tenth, from the end on
    for (size_t f = 0; f < trained; ++f) left += files_[f].count();
    left = cut ? left / 10 : 0;
    for (size_t f = files_.size(); f-- > 0;) {
      const int64_t tested = f >= trained ? files_[f].count() : std::min(left, files_[f].count());
      if (f < trained) left -= tested;
      const int64_t begin = files_[f].count() - tested;
      add(f, 0, begin, train_);
      add(f, begin, files_[f].count(), test_);
    }
    std::ranges::reverse(train_);
    std::ranges::reverse(test_);
    info_ = {.name = "tokens", .train_count = count(train_), .test_count = count(test_)};
    for (const auto& [name, records] :
         {std::pair("train", info_.train_count), std::pair("test", info_.test_count)}) {
      user_check(records > 0,
                 "the text in '{}' is too short: not one {} record of {} tokens; choose a smaller "
                 "--length",
                 folder, name, length);
    }
    measure(folder);
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    read_window(split, index, 0, parts);
  }
  void read_in_epoch(Split split, int64_t index, uint64_t epoch,
                     std::span<const RecordPart> parts) const override {
    const bool moves = shifted_ && epoch > 0 && split == Split::train;
    read_window(split, index, moves ? shift_of(epoch) : 0, parts);
  }

 private:
  static int64_t count(const std::vector<Stretch>& all) {
    int64_t sum = 0;
    for (const Stretch& one : all) sum += one.windows;
    return sum;
  }

  // How far the windows of an epoch are moved.
  int64_t shift_of(uint64_t epoch) const {
    const RecordStream stream(seed_, Split::train, static_cast<int64_t>(epoch));
    return drawn_below(stream.block(0)[0], length_);
  }

  // The last one stays where it is when there is no room behind it.
  void read_window(Split split, int64_t index, int64_t shift,
                   std::span<const RecordPart> parts) const {
    const std::vector<Stretch>& all = split == Split::train ? train_ : test_;
    const Stretch* at = all.data();
    for (; index >= at->windows; ++at) index -= at->windows;
    const int64_t first = std::min(at->begin + index * length_ + shift, at->end - length_ - 1);
    for (size_t f = 0; f < parts.size(); ++f) {
      if (parts[f].data == nullptr) continue;
      files_[at->file].read(first + static_cast<int64_t>(f), parts[f].all<int32_t>());
    }
  }

  // The last token of a window is predicted by the one before it and predicts the first of the next.
  void add(size_t file, int64_t begin, int64_t end, std::vector<Stretch>& to) const {
    const int64_t windows = std::max<int64_t>(0, (end - begin - 1) / length_);
    if (windows > 0) to.push_back({file, begin, end, windows});
  }

  // Looks at every token once.
  void measure(const std::string& folder) {
    const std::string path = folder + "/" + kAbout;
    int64_t stated = 0;
    if (exists(path)) {
      const nlohmann::json about = read_json(path, "a description of tokens");
      const bool sound = about.is_object() && about.contains("vocabulary") &&
                         about["vocabulary"].is_number_integer() && about["vocabulary"] > 0;
      user_check(sound, "'{}' is damaged: it should say how large the vocabulary is", path);
      stated = about["vocabulary"].get<int64_t>();
    }
    Sha256 hash;
    int64_t largest = 0;
    std::vector<int32_t> block(65536);
    for (const TokenFile& file : files_) {
      for (int64_t at = 0; at < file.count(); at += std::ssize(block)) {
        const auto size =
            static_cast<size_t>(std::min<int64_t>(std::ssize(block), file.count() - at));
        const std::span<int32_t> part(block.data(), size);
        file.read(at, part);
        hash.update(std::as_bytes(part));
        for (size_t i = 0; i < size; ++i) {
          const int64_t token = static_cast<uint32_t>(part[i]);
          largest = std::max(largest, token);
          user_check(stated == 0 || token < stated,
                     "'{}': token {} is {}, beyond the vocabulary of {} that '{}' states; make "
                     "both again with `thimble data tokens`",
                     file.path(), at + static_cast<int64_t>(i), token, stated, path);
        }
      }
    }
    user_check(largest < INT32_MAX, "'{}' has a token of {}, which no vocabulary reaches",
               files_.front().path(), largest);
    info_.train_sha256 = hash.hex();
    info_.vocabulary_sha256 = vocabulary_digest(folder);
    for (const char* name : {"tokens", "targets"}) {
      info_.fields.push_back({.name = name,
                              .dtype = DType::i32,
                              .shape = {length_},
                              .limit = stated > 0 ? stated : largest + 1,
                              .pad = info_.fields.empty() ? 0.0 : -1.0});
    }
  }

  const int64_t length_;
  const bool shifted_;
  const uint64_t seed_;
  std::vector<TokenFile> files_;
  std::vector<Stretch> train_, test_;
  DatasetInfo info_;
};

std::unique_ptr<Dataset> open(const DataRequest& request) {
  const RecordField* wanted = find_field(request.wanted, "tokens");
  const bool sized = wanted != nullptr && wanted->shape.rank() == 1 && wanted->shape[0] > 0;
  return std::make_unique<Tokens>(request.folder, sized ? wanted->shape[0] : 1024,
                                  request.own_of<Own>("tokens").shifted, request.seed);
}

}  // namespace

extern const DatasetDef data_tokens{
    "tokens", "text as a stream of tokens: nanoGPT's and llm.c's files, or your own (--data-dir)",
    open, "make its files with `thimble data tokens` and name the folder", fields};

}  // namespace thimble
