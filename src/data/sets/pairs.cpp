// Sentences and their translations, as `thimble data pairs` makes them: train.pairs and valid.pairs.
//
//   source         the tokens and </s>            pad <pad>
//   source_length  how many of them there are
//   target_in      <s> and the tokens             pad <pad>
//   targets        the tokens and </s>            pad -1, which no loss counts
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/io/file.h"
#include "data/dataset.h"
#include "data/format/pair_file.h"
#include "data/pair_set.h"
#include "text/vocabulary.h"

namespace thimble {
namespace {

class Pairs final : public Dataset {
 public:
  explicit Pairs(const std::string& folder)
      : train_(folder + "/train.pairs"), valid_(folder + "/valid.pairs") {
    user_check(train_.vocabularies() == valid_.vocabularies(),
               "'{}' and '{}' were made with different vocabularies; make both with one `thimble "
               "data pairs`",
               train_.path(), valid_.path());
    info_ = {.name = "pairs", .train_count = train_.count(), .test_count = valid_.count()};
    const int64_t longest =
        std::max(measure(train_, info_.train_sha256), measure(valid_, info_.test_sha256));
    const PairVocabularies& sizes = train_.vocabularies();
    const auto add = [&](const char* name, int64_t limit, double pad) {
      info_.fields.push_back({.name = name,
                              .dtype = DType::i32,
                              .shape = {longest},
                              .limit = limit,
                              .pad = pad,
                              .variable = true});
    };
    add("source", sizes.source, kPadToken);
    // A row that is all padding has one token to look at: padding.
    info_.fields.push_back({.name = "source_length", .dtype = DType::i32, .pad = 1});
    add("target_in", sizes.target, kPadToken);
    add("targets", sizes.target, -1);
    info_.vocabulary_sha256 = fmt::format("{:02x}", fmt::join(sizes.digest, ""));
    // Tokens can do without them, but nobody could ever read what comes of these.
    user_check(
        !exists(folder + "/pairs.json") || read_pair_set(folder).digest == info_.vocabulary_sha256,
        "the vocabularies in '{}' are not those that its sentence pairs were made with; make "
        "all of them with one `thimble data pairs`",
        folder);
  }

  const DatasetInfo& info() const override { return info_; }

  int64_t length(Split split, int64_t index, size_t field) const override {
    if (field == 1) return 1;
    const PairFile::Lengths lengths = file(split).lengths(index);
    return (field == 0 ? lengths.source : lengths.target) + 1;
  }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const PairFile& from = file(split);
    if (parts[0].data != nullptr) {
      const std::span<int32_t> source = parts[0].all<int32_t>();
      from.read_source(index, source.first(source.size() - 1));
      source.back() = kEndToken;
    }
    if (parts[1].data != nullptr) {
      parts[1].all<int32_t>()[0] = static_cast<int32_t>(from.lengths(index).source + 1);
    }
    if (parts[2].data != nullptr) {
      const std::span<int32_t> target = parts[2].all<int32_t>();
      target.front() = kBeginToken;
      from.read_target(index, target.subspan(1));
    }
    if (parts[3].data != nullptr) {
      const std::span<int32_t> target = parts[3].all<int32_t>();
      from.read_target(index, target.first(target.size() - 1));
      target.back() = kEndToken;
    }
  }

 private:
  const PairFile& file(Split split) const { return split == Split::train ? train_ : valid_; }

  // Looks at every token once; returns the longest sentence, with its end.
  static int64_t measure(const PairFile& file, std::string& sha256) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(file.vocabularies().digest)));
    int64_t longest = 0;
    std::vector<int32_t> tokens;
    for (int64_t pair = 0; pair < file.count(); ++pair) {
      const PairFile::Lengths lengths = file.lengths(pair);
      longest = std::max({longest, lengths.source, lengths.target});
      for (const bool target : {false, true}) {
        tokens.resize(static_cast<size_t>(target ? lengths.target : lengths.source));
        target ? file.read_target(pair, tokens) : file.read_source(pair, tokens);
        hash.update(std::as_bytes(std::span(tokens)));
        const int64_t most = target ? file.vocabularies().target : file.vocabularies().source;
        for (const int32_t token : tokens) {
          user_check(token >= 0 && token < most,
                     "'{}' has the token {} in pair {}, beyond its vocabulary of {}; make it again "
                     "with `thimble data pairs`",
                     file.path(), token, pair, most);
        }
      }
    }
    sha256 = hash.hex();
    return longest + 1;
  }

  PairFile train_;
  PairFile valid_;
  DatasetInfo info_;
};

}  // namespace

extern const DatasetDef data_pairs{
    "pairs", "sentences and their translations, as `thimble data pairs` makes them (--data-dir)",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      return std::make_unique<Pairs>(request.folder);
    },
    "make its files with `thimble data pairs` and name the folder"};

}  // namespace thimble
