// The adding problem (Hochreiter & Schmidhuber 1997), made on the spot: frames of a number in [0, 1)
// and a mark. Two of the numbers are marked, one in each half of the time steps, and their sum is to
// be told at the end. Always answering 1 has a mean squared error of 1/6.
#include "base/error.h"
#include "data/order/record_stream.h"

namespace thimble {
namespace {

class Adding final : public Dataset {
 public:
  Adding(int64_t length, const MadeCounts& counts, uint64_t seed)
      : length_(length), seed_(seed ^ stable_hash("adding problem")) {
    user_check(length >= 2, "the adding problem needs two time steps at least, not {}", length);
    info_ = {
        .name = "adding",
        .train_count = counts.train,
        .test_count = counts.test,
        .fields = {{.name = "sequence", .dtype = DType::f32, .shape = {length, 2}, .strided = true},
                   {.name = "number", .dtype = DType::f32}}};
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const RecordStream stream(seed_, split, index);
    const PhiloxCounter own = stream.block(0);
    const int64_t half = length_ / 2;
    const int64_t first = drawn_below(own[0], half);
    const int64_t second = half + drawn_below(own[1], length_ - half);
    const auto number = [&](int64_t t) {
      return uniform_from(
          stream.block(1 + static_cast<uint64_t>(t) / 4)[static_cast<size_t>(t % 4)]);
    };
    for (int64_t t = 0; t < length_ && parts[0].data != nullptr; ++t) {
      const std::span<float> frame = parts[0].at<float>(t);
      frame[0] = number(t);
      frame[1] = t == first || t == second ? 1.0f : 0.0f;
    }
    if (parts[1].data != nullptr) parts[1].all<float>()[0] = number(first) + number(second);
  }

 private:
  const int64_t length_;
  const uint64_t seed_;
  DatasetInfo info_;
};

}  // namespace

extern const DatasetDef data_adding{
    "adding", "the adding problem, for `lstm:predicts=number`; made on the spot, needs no files",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      const RecordField* const sequence = find_field(request.wanted, "sequence");
      return std::make_unique<Adding>(sequence == nullptr ? 64 : sequence->shape[0],
                                      MadeCounts(request), request.seed);
    }};

}  // namespace thimble
