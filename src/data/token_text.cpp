#include "data/token_text.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "data/token_set.h"
#include "text/byte_bpe.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace thimble {
namespace {

class Bytes256 final : public TokenText {
 public:
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) text += static_cast<char>(token);
    return text;
  }
};

class Characters final : public TokenText {
 public:
  explicit Characters(const std::string& path) : characters_(CharacterVocabulary::read(path)) {}

  std::vector<int32_t> encode(std::string_view text) const override {
    user_check(!find_malformed(text), "the prompt is not UTF-8; convert it");
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
    user_check(!find_malformed(text), "the prompt is not UTF-8; convert it");
    return bpe_.encode(text);
  }
  std::string decode(std::span<const int32_t> tokens) const override { return bpe_.decode(tokens); }

 private:
  const ByteBpe bpe_;
};

class Pieces final : public TokenText {
 public:
  Pieces(const std::string& folder, const PreparationOptions& options)
      : pieces_(Vocabulary::read(folder + "/vocabulary.txt")),
        preparation_(options, codes_of(folder + "/codes.bpe")) {}

  std::vector<int32_t> encode(std::string_view text) const override {
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
  static std::shared_ptr<const Bpe> codes_of(const std::string& path) {
    return exists(path) ? std::make_shared<const Bpe>(read_merges(path)) : nullptr;
  }

  const Vocabulary pieces_;
  const Preparation preparation_;
};

constexpr const char* kAbout = "/tokens.json";

// What tokens are made by; empty where the description does not say.
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
  return std::make_unique<Pieces>(folder, preparation_in(about));
}

std::string vocabulary_digest(const std::string& folder) {
  const std::string path = folder + kAbout;
  const std::string gpt2(name_of(TokenKind::gpt2));
  if (!exists(path)) return is_bare_gpt2(folder) ? gpt2 : "";
  const nlohmann::json about = read_json(path, "a description of tokens");
  const std::string by = kind_in(about);
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
  for (const char* name : {"/vocabulary.txt", "/codes.bpe"}) {
    add(exists(folder + name) ? read_text(folder + name, "a vocabulary", kMost) : "");
  }
  return hash.hex();
}

}  // namespace thimble
