// From parallel text to a data set.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "data/format/file_group.h"
#include "data/format/pair_file.h"
#include "data/pair_set.h"
#include "text/utf8.h"

namespace thimble {
namespace {

struct WordPair {
  std::string source;
  std::string target;
};

// Lines of the talks of TED that say what a talk is, not what is said in it.
bool is_about(std::string_view line) {
  return line.find("<url>") != std::string_view::npos ||
         line.find("<talkid>") != std::string_view::npos ||
         line.find("<keywords>") != std::string_view::npos;
}

void erase_all(std::string& text, std::string_view part) {
  for (size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
}

// The sentences of a file: its lines, or in the files of IWSLT what their tags enclose.
std::vector<std::string> sentences_of(const std::string& path) {
  const bool xml = path.ends_with(".xml");
  const bool tagged = path.find("train.tags") != std::string::npos;
  std::vector<std::string> sentences;
  for_each_line(path, [&](int64_t number, std::string_view line) {
    if (xml) {
      const size_t begin = line.find("<seg id");
      if (begin == std::string_view::npos) return;
      const size_t text = line.find('>', begin), end = line.rfind("</seg>");
      user_check(text < end && end != std::string_view::npos,
                 "'{}', line {}: a sentence, from <seg id=...> to </seg>, should be one line; join "
                 "its lines",
                 path, number);
      sentences.emplace_back(line.substr(text + 1, end - text - 1));
      return;
    }
    if (tagged && is_about(line)) return;
    sentences.emplace_back(line);
    if (!tagged) return;
    for (const char* tag : {"<title>", "</title>", "<description>", "</description>"}) {
      erase_all(sentences.back(), tag);
    }
  });
  return sentences;
}

std::string column(std::string_view line, int number, const std::string& path, int64_t at) {
  size_t begin = 0;
  for (int i = 1; i < number && begin != std::string_view::npos; ++i) {
    const size_t tab = line.find('\t', begin);
    begin = tab == std::string_view::npos ? tab : tab + 1;
  }
  user_check(begin != std::string_view::npos,
             "'{}', line {}: there is no column {}; columns are apart by tabs, and --columns says "
             "which they are",
             path, at, number);
  return std::string(line.substr(begin, line.find('\t', begin) - begin));
}

std::vector<WordPair> read_pairs(const ParallelFiles& files, const PairOptions& options) {
  std::vector<WordPair> pairs;
  const Preparation from(options.source), to(options.target);
  const auto add = [&](std::string_view source, std::string_view target) {
    pairs.push_back({from.words(source), to.words(target)});
  };
  if (files.target.empty()) {
    for_each_line(files.source, [&](int64_t number, std::string_view line) {
      if (line.empty())
        return add("", "");  // left out, and counted, with the others that are empty
      add(column(line, files.source_column, files.source, number),
          column(line, files.target_column, files.source, number));
    });
    return pairs;
  }
  const std::vector<std::string> source = sentences_of(files.source);
  const std::vector<std::string> target = sentences_of(files.target);
  user_check(source.size() == target.size(),
             "'{}' has {} lines and '{}' has {}: a sentence and its translation stand in the same "
             "line of each",
             files.source, source.size(), files.target, target.size());
  for (size_t i = 0; i < source.size(); ++i) add(source[i], target[i]);
  return pairs;
}

// Pairs that are left out, and why.
struct Dropped {
  int64_t empty = 0, too_short = 0, too_long = 0, ratio = 0;
};

std::vector<WordPair> filtered(std::vector<WordPair> pairs, const PairOptions& options,
                               const std::string& name) {
  Dropped dropped;
  const size_t before = pairs.size();
  std::erase_if(pairs, [&](const WordPair& pair) {
    const auto a = static_cast<int64_t>(split_spaces(pair.source).size());
    const auto b = static_cast<int64_t>(split_spaces(pair.target).size());
    const auto [less, more] = std::minmax(a, b);
    int64_t* const why =
        less == 0                 ? &dropped.empty
        : less < options.shortest ? &dropped.too_short
        : more > options.longest  ? &dropped.too_long
        : options.ratio > 0 && static_cast<double>(more) > options.ratio * static_cast<double>(less)
            ? &dropped.ratio
            : nullptr;
    if (why != nullptr) ++*why;
    return why != nullptr;
  });
  options.say(fmt::format(
      "{}: {} of {} pairs; left out: {} with an empty line, {} below {} words, {} above {}, {} by "
      "their ratio",
      name, pairs.size(), before, dropped.empty, dropped.too_short, options.shortest,
      dropped.too_long, options.longest, dropped.ratio));
  user_check(!pairs.empty(), "not one pair of '{}' is left; check the files and the limits", name);
  return pairs;
}

// Moves every so many of the training pairs to the validation pairs.
std::vector<WordPair> split_off(std::vector<WordPair>& train, int64_t every) {
  std::vector<WordPair> valid, rest;
  for (size_t i = 0; i < train.size(); ++i) {
    const bool out = (static_cast<int64_t>(i) + 1) % every == 0;
    (out ? valid : rest).push_back(std::move(train[i]));
  }
  train = std::move(rest);
  return valid;
}

std::vector<Merge> merges_for(const PairOptions& options, const std::vector<WordPair>& train) {
  if (!options.codes.empty()) return read_merges(options.codes);
  if (options.merges == 0) return {};
  WordCounts counts;
  for (const WordPair& pair : train) {
    count_words(pair.source, counts);
    count_words(pair.target, counts);
  }
  std::vector<Merge> merges = learn_bpe(counts, options.merges);
  options.say(fmt::format("learnt {} merges from {} words", merges.size(), counts.size()));
  return merges;
}

nlohmann::json preparation_json(const PreparationOptions& options) {
  return {{"language", options.language},
          {"tokenise", options.tokenise},
          {"lower_case", options.lower_case}};
}

PreparationOptions preparation_from(const nlohmann::json& json) {
  return {.tokenise = json.at("tokenise").get<bool>(),
          .lower_case = json.at("lower_case").get<bool>(),
          .language = json.at("language").get<std::string>()};
}

Sha256::Digest digest_of(const std::string& source, const std::string& target,
                         const std::string& codes) {
  Sha256 hash;
  for (const std::string* text : {&source, &target, &codes}) {
    const uint64_t size = text->size();
    hash.update(std::as_bytes(std::span(&size, 1)));
    hash.update(std::as_bytes(std::span(*text)));
  }
  return hash.digest();
}

}  // namespace

void make_pairs(const PairOptions& options) {
  std::vector<WordPair> train =
      filtered(read_pairs(options.train, options), options, options.train.source);
  std::vector<WordPair> valid =
      options.valid.source.empty()
          ? split_off(train, options.valid_every)
          : filtered(read_pairs(options.valid, options), options, options.valid.source);
  user_check(!train.empty() && !valid.empty(),
             "{} training and {} validation pairs are too few; give more text, or --valid files",
             train.size(), valid.size());
  std::vector<WordPair> test;
  if (!options.test.source.empty()) {
    test = filtered(read_pairs(options.test, options), options, options.test.source);
  }
  const std::vector<Merge> merges = merges_for(options, train);
  const auto bpe = merges.empty() ? nullptr : std::make_shared<const Bpe>(merges);
  const Preparation from(options.source, bpe), to(options.target, bpe);
  WordCounts source_counts, target_counts;
  for (std::vector<WordPair>* pairs : {&train, &valid, &test}) {
    for (WordPair& pair : *pairs) {
      pair = {from.pieces(pair.source), to.pieces(pair.target)};
      if (pairs != &train) continue;
      count_words(pair.source, source_counts);
      count_words(pair.target, options.joint ? source_counts : target_counts);
    }
  }
  const Vocabulary source(source_counts, options.least_count);
  const Vocabulary target(options.joint ? source_counts : target_counts, options.least_count);
  const std::string codes = merges.empty() ? "" : to_text(merges);
  const PairVocabularies sizes = {source.size(), target.size(),
                                  digest_of(source.to_text(), target.to_text(), codes)};
  ensure_directory(options.out);
  const auto path = [&](const char* name) { return options.out + "/" + name; };
  FileGroup files;
  files.add(path("source.dict"), source.to_text());
  files.add(path("target.dict"), target.to_text());
  if (!merges.empty()) files.add(path("codes.bpe"), codes);
  const nlohmann::json about = {{"source", preparation_json(options.source)},
                                {"target", preparation_json(options.target)},
                                {"pieces", !merges.empty()}};
  files.add(path("pairs.json"), json_text(about, 2) + "\n");
  const auto write = [&](const char* name, const std::vector<WordPair>& pairs) {
    if (pairs.empty()) return;
    std::vector<TokenPair> numbered;
    int64_t tokens = 0, unknown = 0;
    for (const WordPair& pair : pairs) {
      numbered.push_back({source.encode(pair.source), target.encode(pair.target)});
      for (const auto* side : {&numbered.back().source, &numbered.back().target}) {
        tokens += std::ssize(*side);
        unknown += std::ranges::count(*side, kUnknownToken);
      }
    }
    write_pairs(files.add(path(name)), std::move(numbered), sizes);
    options.say(fmt::format("{}: {} pairs, {} tokens, {} of them unknown", path(name), pairs.size(),
                            tokens, unknown));
  };
  write("train.pairs", train);
  write("valid.pairs", valid);
  write("test.pairs", test);
  files.commit();
  options.say(fmt::format("vocabularies of {} and {} pieces", source.size(), target.size()));
}

PairSet read_pair_set(const std::string& folder) {
  const std::string path = folder + "/pairs.json";
  user_check(
      exists(path),
      "'{}' is no folder of `thimble data pairs`: it has no pairs.json; name the one that the "
      "run was trained on with --data-dir",
      folder);
  const nlohmann::json about = read_json(path, "a description of sentence pairs");
  try {
    const bool cut = about.at("pieces").get<bool>();
    const std::vector<Merge> merges =
        cut ? read_merges(folder + "/codes.bpe") : std::vector<Merge>();
    const auto bpe = cut ? std::make_shared<const Bpe>(merges) : nullptr;
    Vocabulary source = Vocabulary::read(folder + "/source.dict");
    Vocabulary target = Vocabulary::read(folder + "/target.dict");
    const Sha256::Digest digest =
        digest_of(source.to_text(), target.to_text(), cut ? to_text(merges) : "");
    return {Preparation(preparation_from(about.at("source")), bpe),
            Preparation(preparation_from(about.at("target")), bpe), std::move(source),
            std::move(target), fmt::format("{:02x}", fmt::join(digest, ""))};
  } catch (const nlohmann::json::exception&) {
    user_error(
        "'{}' is damaged: it should say how sentences become pieces; make the folder again with "
        "`thimble data pairs`",
        path);
  }
}

}  // namespace thimble
