// From text to a stream of tokens.
#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "data/format/file_group.h"
#include "data/format/token_file.h"
#include "data/token_set.h"
#include "text/byte_bpe.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace thimble {
namespace {

constexpr Bytes kMostText(int64_t{1} << 32);
constexpr std::array<std::string_view, 4> kKinds = {"bytes", "characters", "pieces", "gpt2"};

// Without the mark that says in which order its bytes are.
std::string checked_text(const std::string& path) {
  std::string text = read_text(path, "a text", kMostText);
  if (const auto bad = find_malformed(text)) {
    const auto line = std::ranges::count(std::string_view(text).substr(0, *bad), '\n') + 1;
    user_error("'{}' is not UTF-8: line {}, byte {} of the file; {}, or choose --by bytes", path,
               line, *bad + 1, how_to_read(text));
  }
  if (const size_t null = text.find('\0'); null != std::string::npos) {
    const auto line = std::ranges::count(std::string_view(text).substr(0, null), '\n') + 1;
    user_error(
        "'{}' has a null character in line {}, byte {} of the file: it is no text file; take it "
        "out, or choose --by bytes",
        path, line, null + 1);
  }
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

using Emit = std::function<void(std::span<const int32_t> tokens)>;

// Hands out a text's tokens piece by piece.
class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual int64_t vocabulary() const = 0;
  virtual void encode(const std::string& path, const Emit& emit) const = 0;
  // Files that have to lie beside the tokens, for text to become such tokens later: names of files and
  // what is in them.
  virtual std::vector<std::pair<std::string, std::string>> files() const { return {}; }
  virtual bool cuts_words() const { return false; }
};

class ByBytes final : public Encoder {
 public:
  int64_t vocabulary() const override { return 256; }
  void encode(const std::string& path, const Emit& emit) const override {
    const ReadFile file(path);
    std::array<std::byte, 65536> block;
    std::vector<int32_t> tokens;
    for (int64_t at = 0; at < file.size();) {
      const auto size = static_cast<size_t>(std::min<int64_t>(file.size() - at, block.size()));
      file.read_at(at, std::span(block).first(size));
      tokens.resize(size);
      for (size_t i = 0; i < size; ++i) tokens[i] = std::to_integer<int32_t>(block[i]);
      emit(tokens);
      at += static_cast<int64_t>(size);
    }
  }
};

class ByCharacters final : public Encoder {
 public:
  explicit ByCharacters(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) characters_.count(checked_text(path));
  }
  int64_t vocabulary() const override { return characters_.size(); }
  void encode(const std::string& path, const Emit& emit) const override {
    std::vector<int32_t> tokens;
    for (const char32_t c : decode_utf8(checked_text(path))) {
      tokens.push_back(characters_.number_of(c));
    }
    emit(tokens);
  }
  std::vector<std::pair<std::string, std::string>> files() const override {
    return {{"vocabulary.txt", characters_.to_text()}};
  }

 private:
  CharacterVocabulary characters_;
};

// Each line is its pieces and an end.
class ByPieces final : public Encoder {
 public:
  explicit ByPieces(const TokenOptions& options) {
    const Preparation plain(options.preparation);
    std::vector<Merge> merges;
    if (!options.codes.empty()) {
      merges = read_merges(options.codes);
    } else if (options.merges > 0) {
      merges = learn_bpe(
          counts_of(options.texts, [&](std::string_view line) { return plain.words(line); }),
          options.merges);
    }
    if (!merges.empty()) codes_ = to_text(merges);
    const auto bpe = merges.empty() ? nullptr : std::make_shared<const Bpe>(merges);
    preparation_ = std::make_unique<Preparation>(options.preparation, bpe);
    pieces_ = std::make_unique<Vocabulary>(
        counts_of(options.texts, [this](std::string_view line) { return pieces_of(line); }));
  }
  int64_t vocabulary() const override { return pieces_->size(); }
  void encode(const std::string& path, const Emit& emit) const override {
    for_each_line(path, [&](int64_t, std::string_view line) {
      std::vector<int32_t> tokens = pieces_->encode(pieces_of(line));
      tokens.push_back(kEndToken);
      emit(tokens);
    });
  }
  std::vector<std::pair<std::string, std::string>> files() const override {
    return {{"vocabulary.txt", pieces_->to_text()}, {"codes.bpe", codes_}};
  }
  bool cuts_words() const override { return !codes_.empty(); }

 private:
  std::string pieces_of(std::string_view line) const {
    return preparation_->pieces(preparation_->words(line));
  }
  template <class Words>
  static WordCounts counts_of(const std::vector<std::string>& paths, Words&& words) {
    WordCounts counts;
    for (const std::string& path : paths) {
      for_each_line(path,
                    [&](int64_t, std::string_view line) { count_words(words(line), counts); });
    }
    return counts;
  }

  std::string codes_;
  std::unique_ptr<Preparation> preparation_;
  std::unique_ptr<Vocabulary> pieces_;
};

class ByGpt2 final : public Encoder {
 public:
  explicit ByGpt2(const std::string& folder)
      : folder_(folder), bpe_(ByteBpe::read(folder + "/vocab.json", folder + "/merges.txt")) {}
  int64_t vocabulary() const override { return bpe_.size(); }
  void encode(const std::string& path, const Emit& emit) const override {
    emit(bpe_.encode(checked_text(path)));
  }
  std::vector<std::pair<std::string, std::string>> files() const override {
    std::vector<std::pair<std::string, std::string>> all;
    for (const char* name : {"vocab.json", "merges.txt"}) {
      all.emplace_back(name,
                       read_text(folder_ + "/" + name, "a tokenizer's file", kLargestJsonFile));
    }
    return all;
  }

 private:
  const std::string folder_;
  const ByteBpe bpe_;
};

std::unique_ptr<Encoder> make_encoder(const TokenOptions& options) {
  if (options.kind == TokenKind::bytes) return std::make_unique<ByBytes>();
  if (options.kind == TokenKind::pieces) return std::make_unique<ByPieces>(options);
  if (options.kind == TokenKind::gpt2) return std::make_unique<ByGpt2>(options.tokenizer);
  std::vector<std::string> all = options.texts;
  all.insert(all.end(), options.valid.begin(), options.valid.end());
  return std::make_unique<ByCharacters>(all);
}

int64_t count_tokens(const Encoder& encoder, const std::vector<std::string>& paths) {
  int64_t count = 0;
  for (const std::string& path : paths) {
    encoder.encode(path, [&](std::span<const int32_t> tokens) { count += std::ssize(tokens); });
  }
  return count;
}

}  // namespace

std::string_view name_of(TokenKind kind) { return kKinds[static_cast<size_t>(kind)]; }

void make_tokens(const TokenOptions& options) {
  user_check(!options.texts.empty(), "there is no text to make tokens of");
  const std::unique_ptr<Encoder> encoder = make_encoder(options);
  const bool cut = options.valid.empty();
  const int64_t all = count_tokens(*encoder, options.texts);
  const int64_t trained = cut ? all * 9 / 10 : all;
  user_check(trained > 0, "'{}' is too short: {} tokens", options.texts.front(), all);
  ensure_directory(options.out);
  TokenFileWriter train(options.out + "/train.bin", encoder->vocabulary(), options.raw);
  TokenFileWriter valid(options.out + "/val.bin", encoder->vocabulary(), options.raw);
  for (const std::string& path : options.texts) {
    encoder->encode(path, [&](std::span<const int32_t> tokens) {
      const auto room = static_cast<size_t>(std::max<int64_t>(0, trained - train.count()));
      const size_t first = std::min(room, tokens.size());
      train.write(tokens.first(first));
      valid.write(tokens.subspan(first));
    });
  }
  for (const std::string& path : options.valid) {
    encoder->encode(path, [&](std::span<const int32_t> tokens) { valid.write(tokens); });
  }
  nlohmann::json about = {{"vocabulary", encoder->vocabulary()},
                          {"by", std::string(name_of(options.kind))}};
  if (options.kind == TokenKind::pieces) {
    about["language"] = options.preparation.language;
    about["tokenise"] = options.preparation.tokenise;
    about["lower_case"] = options.preparation.lower_case;
    about["cut"] = encoder->cuts_words();
  }
  FileGroup files;
  for (TokenFileWriter* tokens : {&train, &valid}) tokens->finish(files.add(tokens->path()));
  for (const auto& [name, text] : encoder->files()) {
    if (!text.empty()) files.add(options.out + "/" + name, text);
  }
  files.add(options.out + "/tokens.json", json_text(about, 2) + "\n");
  files.commit();
  options.say(fmt::format("{}: {} tokens to train on, {} to test with, of a vocabulary of {}",
                          options.out, train.count(), valid.count(), encoder->vocabulary()));
}

}  // namespace thimble
