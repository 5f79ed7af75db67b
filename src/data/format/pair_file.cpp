#include "data/format/pair_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace thimble {
namespace {

constexpr char kMagic[8] = {'t', 'h', 'i', 'm', 'p', 'a', 'i', 'r'};
constexpr uint32_t kVersion = 1;

struct PairHeader {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
  uint64_t pairs;
  uint64_t tokens;
  uint32_t source_vocabulary;
  uint32_t target_vocabulary;
  Sha256::Digest digest;
};
static_assert(sizeof(PairHeader) == 72);

int64_t longer(const TokenPair& pair) {
  return static_cast<int64_t>(std::max(pair.source.size(), pair.target.size()));
}

}  // namespace

PairFile::PairFile(const std::string& path) : file_(path) {
  PairHeader header{};
  const bool large = file_.size() >= static_cast<int64_t>(sizeof(PairHeader));
  if (large) file_.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  user_check(large && std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0,
             "'{}' is no file of sentence pairs; make it with `thimble data pairs`", path);
  user_check(header.version == kVersion && (header.token_bytes == 2 || header.token_bytes == 4),
             "'{}' is of another version; make it again with `thimble data pairs`", path);
  constexpr uint64_t kMost = uint64_t{1} << 40;
  const bool sound = header.pairs > 0 && header.pairs < kMost && header.tokens < kMost;
  const uint64_t index = (2 * header.pairs + 1) * sizeof(uint64_t);
  const uint64_t wanted = sizeof(PairHeader) + index + header.tokens * header.token_bytes;
  user_check(sound && wanted == static_cast<uint64_t>(file_.size()),
             "'{}' is truncated or oversized: its header asks for {} bytes, and it has {}; make it "
             "again with `thimble data pairs`",
             path, wanted, file_.size());
  count_ = static_cast<int64_t>(header.pairs);
  token_bytes_ = header.token_bytes;
  tokens_at_ = static_cast<int64_t>(sizeof(PairHeader) + index);
  vocabularies_ = {header.source_vocabulary, header.target_vocabulary, header.digest};
  std::array<uint64_t, 1024> block;
  uint64_t last = 0;
  for (int64_t s = 0; s <= 2 * count_;) {
    const auto size = static_cast<size_t>(std::min<int64_t>(block.size(), 2 * count_ + 1 - s));
    offsets(s, std::span(block).first(size));
    for (size_t i = 0; i < size; ++i) {
      const bool first = s == 0 && i == 0;
      user_check(first ? block[i] == 0 : block[i] > last && block[i] <= header.tokens,
                 "'{}' is damaged: its sentences do not follow each other; make it again with "
                 "`thimble data pairs`",
                 path);
      last = block[i];
    }
    s += static_cast<int64_t>(size);
  }
  user_check(last == header.tokens, "'{}' is damaged: its last sentence does not end with it",
             path);
}

void PairFile::offsets(int64_t sentence, std::span<uint64_t> out) const {
  file_.read_at(static_cast<int64_t>(sizeof(PairHeader)) + sentence * 8,
                std::as_writable_bytes(out));
}

PairFile::Lengths PairFile::lengths(int64_t pair) const {
  std::array<uint64_t, 3> at;
  offsets(2 * pair, at);
  return {static_cast<int64_t>(at[1] - at[0]), static_cast<int64_t>(at[2] - at[1])};
}

void PairFile::read(int64_t sentence, std::span<int32_t> out) const {
  std::array<uint64_t, 2> at;
  offsets(sentence, at);
  internal_check(at[1] - at[0] == out.size(), "PairFile: the room is not as long as the sentence");
  // Right to left in the caller's own room: what is widened lies in front of what is not.
  const auto bytes =
      std::as_writable_bytes(out).first(out.size() * static_cast<size_t>(token_bytes_));
  file_.read_at(tokens_at_ + static_cast<int64_t>(at[0]) * token_bytes_, bytes);
  if (token_bytes_ == 4) return;
  for (size_t i = out.size(); i-- > 0;) {
    uint16_t token;
    std::memcpy(&token, bytes.data() + 2 * i, 2);
    const int32_t wide = token;
    std::memcpy(out.data() + i, &wide, 4);
  }
}

void PairFile::read_source(int64_t pair, std::span<int32_t> out) const { read(2 * pair, out); }
void PairFile::read_target(int64_t pair, std::span<int32_t> out) const { read(2 * pair + 1, out); }

void write_pairs(AtomicFile& file, std::vector<TokenPair> pairs,
                 const PairVocabularies& vocabularies) {
  internal_check(!pairs.empty(), "write_pairs: there are none");
  std::ranges::stable_sort(pairs, {}, longer);
  const bool wide = std::max(vocabularies.source, vocabularies.target) > 65536;
  PairHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.token_bytes = wide ? 4 : 2;
  header.pairs = pairs.size();
  header.source_vocabulary = static_cast<uint32_t>(vocabularies.source);
  header.target_vocabulary = static_cast<uint32_t>(vocabularies.target);
  header.digest = vocabularies.digest;
  std::vector<uint64_t> index = {0};
  std::string tokens;
  for (const TokenPair& pair : pairs) {
    for (const std::vector<int32_t>* sentence : {&pair.source, &pair.target}) {
      for (const int32_t token : *sentence) {
        const auto value = static_cast<uint32_t>(token);
        tokens.append(reinterpret_cast<const char*>(&value), header.token_bytes);
      }
      index.push_back(index.back() + sentence->size());
    }
  }
  header.tokens = index.back();
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(std::as_bytes(std::span(index)));
  file.write(tokens);
}

}  // namespace thimble
