#include "data/prepare/token_text.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/sha256.h"
#include "data/token_set.h"
#include "text/byte_bpe.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace thimble {
namespace {

constexpr const char* kAbout = "/tokens.json";
constexpr const char* kCodes = "/codes.bpe";

void check_prompt(std::string_view text) {
  user_check(!find_malformed(text), "the prompt is not UTF-8; convert it");
}

class Bytes256 final : public TokenText {
 public:
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 256) text += static_cast<char>(token);
    }
    return text;
  }
};

class Characters final : public TokenText {
 public:
  explicit Characters(const std::string& path) : characters_(CharacterVocabulary::read(path)) {}

  std::vector<int32_t> encode(std::string_view text) const override {
    check_prompt(text);
    std::vector<int32_t> tokens;
    for (const char32_t c : decode_utf8(text)) {
      tokens.push_back(characters_.number_of(c));
      user_check(tokens.back() >= 0,
                 "'{}' in the prompt is not in the vocabulary that the run was trained with; leave "
                 "it out",
                 encode_utf8(std::u32string(1, c)));
    }
    return tokens;
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::u32string text;
    for (const int32_t token : tokens) {
      if (token < characters_.size()) text += characters_.character(token);
    }
    return encode_utf8(text);
  }

 private:
  const CharacterVocabulary characters_;
};

class Gpt2 final : public TokenText {
 public:
  explicit Gpt2(const std::string& folder)
      : bpe_(ByteBpe::read(folder + "/vocab.json", folder + "/merges.txt")) {}

  std::vector<int32_t> encode(std::string_view text) const override {
    check_prompt(text);
    return bpe_.encode(text);
  }
  std::string decode(std::span<const int32_t> tokens) const override { return bpe_.decode(tokens); }

 private:
  const ByteBpe bpe_;
};

class Pieces final : public TokenText {
 public:
  Pieces(const std::string& folder, const PreparationOptions& options, bool cut)
      : pieces_(Vocabulary::read(folder + "/vocabulary.txt")),
        preparation_(options,
                     cut ? std::make_shared<const Bpe>(read_merges(folder + kCodes)) : nullptr) {}

  std::string_view gap() const override { return " "; }
  std::vector<int32_t> encode(std::string_view text) const override {
    check_prompt(text);
    std::vector<int32_t> tokens;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      for (const int32_t token : pieces_.encode(preparation_.pieces(preparation_.words(line)))) {
        tokens.push_back(token);
      }
      if (end == std::string_view::npos) break;
      tokens.push_back(kEndToken);
      text.remove_prefix(end + 1);
    }
    return tokens;
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    while (!tokens.empty()) {
      size_t end = 0;
      while (end < tokens.size() && tokens[end] != kEndToken) ++end;
      std::vector<int32_t> line;
      for (const int32_t token : tokens.first(end)) {
        if (token < pieces_.size()) line.push_back(token);
      }
      text += preparation_.text(pieces_.decode(line));
      if (end == tokens.size()) break;
      text += '\n';
      tokens = tokens.subspan(end + 1);
    }
    return text;
  }

 private:
  const Vocabulary pieces_;
  const Preparation preparation_;
};

// The maker of tokens. Empty where the description does not say.
std::string kind_in(const nlohmann::json& about) {
  const bool says = about.is_object() && about.contains("by") && about["by"].is_string();
  return says ? about["by"].get<std::string>() : "";
}

PreparationOptions preparation_in(const nlohmann::json& about) {
  const auto flag = [&](const char* key) {
    return about.contains(key) && about[key].is_boolean() && about[key].get<bool>();
  };
  PreparationOptions options = {.tokenise = flag("tokenise"), .lower_case = flag("lower_case")};
  if (about.contains("language") && about["language"].is_string()) {
    options.language = about["language"].get<std::string>();
  }
  return options;
}

// Whether words are cut. Merges that lie there may be those of something else; only folders that were made
// before it was written down have nothing better to go by.
bool cuts_words(const nlohmann::json& about, const std::string& folder) {
  const bool says = about.contains("cut") && about["cut"].is_boolean();
  return says ? about["cut"].get<bool>() : exists(folder + kCodes);
}

// As transformers leaves them, beside files of tokens that others made.
bool is_bare_gpt2(const std::string& folder) {
  return exists(folder + "/vocab.json") && exists(folder + "/merges.txt");
}

}  // namespace

std::unique_ptr<TokenText> TokenText::read(const std::string& folder) {
  const std::string path = folder + kAbout;
  if (is_bare_gpt2(folder) && !exists(path)) return std::make_unique<Gpt2>(folder);
  user_check(
      exists(path),
      "'{}' does not say what its tokens are; name with --data-dir the folder that `thimble "
      "data tokens` made, or one with GPT-2's vocab.json and merges.txt, or choose --numbers",
      folder);
  const nlohmann::json about = read_json(path, "a description of tokens");
  const std::string by = kind_in(about);
  if (by == name_of(TokenKind::bytes)) return std::make_unique<Bytes256>();
  if (by == name_of(TokenKind::gpt2)) return std::make_unique<Gpt2>(folder);
  if (by == name_of(TokenKind::characters)) {
    return std::make_unique<Characters>(folder + "/vocabulary.txt");
  }
  user_check(by == name_of(TokenKind::pieces),
             "'{}' is damaged: it should say what tokens are made by", path);
  return std::make_unique<Pieces>(folder, preparation_in(about), cuts_words(about, folder));
}

std::string vocabulary_digest(const std::string& folder) {
  const std::string path = folder + kAbout;
  const std::string gpt2(name_of(TokenKind::gpt2));
  if (!exists(path)) return is_bare_gpt2(folder) ? gpt2 : "";
  const nlohmann::json about = read_json(path, "a description of tokens");
  std::string by = kind_in(about);
  if (by.empty() || by == gpt2) return by;  // of GPT-2 there is one
  constexpr Bytes kMost(int64_t{1} << 30);
  Sha256 hash;
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    hash.update(std::as_bytes(std::span(&size, 1)));
    hash.update(std::as_bytes(std::span(text)));
  };
  add(by);
  const PreparationOptions how = preparation_in(about);
  add(fmt::format("{} {} {}", how.tokenise, how.lower_case, how.language));
  const auto add_file = [&](const std::string& file) {
    add(exists(file) ? read_text(file, "a vocabulary", kMost) : "");
  };
  add_file(folder + "/vocabulary.txt");
  cuts_words(about, folder) ? add_file(folder + kCodes) : add("");
  return hash.hex();
}

}  // namespace thimble
