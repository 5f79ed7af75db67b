// The copy task (Hochreiter & Schmidhuber 1997), made on the spot: some symbols, a long wait, a sign,
// and then the symbols again, which are to be told; blanks before. Who remembers nothing has a loss of
// S log 8 / T, of S symbols in T time steps.
//
//   tokens   s s s . . . . . . . ! . . .      symbols are 2 to 9, a blank is 0, the sign is 1
//   targets  . . . . . . . . . . . s s s
#include <algorithm>

#include "base/error.h"
#include "data/order/record_stream.h"

namespace thimble {
namespace {

constexpr int32_t kSign = 1, kFirstSymbol = 2;
constexpr int64_t kTokens = 10, kMostSymbols = 10;

class Copy final : public Dataset {
 public:
  Copy(int64_t length, const MadeCounts& counts, uint64_t seed)
      : length_(length),
        symbols_(std::min(kMostSymbols, (length - 1) / 2)),
        seed_(seed ^ stable_hash("copy task")) {
    user_check(length >= 3, "the copy task needs three time steps at least, not {}", length);
    info_ = {.name = "copy", .train_count = counts.train, .test_count = counts.test};
    for (const char* name : {"tokens", "targets"}) {
      info_.fields.push_back({.name = name,
                              .dtype = DType::i32,
                              .shape = {length},
                              .limit = kTokens,
                              .pad = info_.fields.empty() ? 0.0 : -1.0});
    }
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const RecordStream stream(seed_, split, index);
    for (const size_t field : {size_t{0}, size_t{1}}) {
      if (parts[field].data == nullptr) continue;
      const std::span<int32_t> to = parts[field].all<int32_t>();
      std::ranges::fill(to, 0);
      if (field == 0) to[static_cast<size_t>(length_ - symbols_ - 1)] = kSign;
      const int64_t first = field == 0 ? 0 : length_ - symbols_;
      for (int64_t i = 0; i < symbols_; ++i) {
        const uint32_t word =
            stream.block(static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)];
        to[static_cast<size_t>(first + i)] =
            kFirstSymbol + static_cast<int32_t>(drawn_below(word, kTokens - kFirstSymbol));
      }
    }
  }

 private:
  const int64_t length_, symbols_;
  const uint64_t seed_;
  DatasetInfo info_;
};

}  // namespace

extern const DatasetDef data_copy{
    "copy",
    "the copy task, for `lstm:reads=tokens,predicts=targets`; made on the spot, needs no files",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      const RecordField* const tokens = find_field(request.wanted, "tokens");
      return std::make_unique<Copy>(tokens == nullptr ? 64 : tokens->shape[0], MadeCounts(request),
                                    request.seed);
    }};

}  // namespace thimble
