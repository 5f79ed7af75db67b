// Random records with whatever fields a model reads: numbers of deviation one, whole numbers below
// their limits. For plans, times and tests of nets that no other set knows.
#include "base/error.h"
#include "data/label_field.h"
#include "data/order/record_stream.h"

namespace thimble {
namespace {

class Noise final : public Dataset {
 public:
  Noise(std::vector<RecordField> fields, const MadeCounts& counts, uint64_t seed)
      : seed_(seed ^ stable_hash("noise")) {
    for (RecordField& field : fields) {
      field.strided = true;
      pad_as_label(field);
      if (field.dtype == DType::i32 && field.limit == 0) field.limit = 2;
    }
    info_ = {.name = "noise",
             .train_count = counts.train,
             .test_count = counts.test,
             .fields = std::move(fields)};
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const RecordStream stream(seed_, split, index);
    uint64_t drawn = 0;
    PhiloxCounter words{};
    const auto word = [&] {
      if (drawn % 4 == 0) words = stream.block(drawn / 4);
      return words[static_cast<size_t>(drawn++ % 4)];
    };
    for (size_t f = 0; f < parts.size(); ++f) {
      if (parts[f].data == nullptr) continue;
      for (int64_t i = 0; i < parts[f].entries; ++i) fill(info_.fields[f], parts[f], i, word);
    }
  }

 private:
  template <class Word>
  static void fill(const RecordField& field, const RecordPart& part, int64_t i, const Word& word) {
    if (field.dtype == DType::f32) {
      constexpr float kWide = 3.4641016f;  // sqrt(12): uniform numbers of deviation one
      for (float& number : part.at<float>(i)) number = (uniform_from(word()) - 0.5f) * kWide;
    } else if (field.dtype == DType::i32) {
      for (int32_t& number : part.at<int32_t>(i)) {
        number = static_cast<int32_t>(drawn_below(word(), field.limit));
      }
    } else {
      for (uint8_t& number : part.at<uint8_t>(i)) number = static_cast<uint8_t>(word() >> 24);
    }
  }

  const uint64_t seed_;
  DatasetInfo info_;
};

}  // namespace

extern const DatasetDef data_noise{
    .name = "noise",
    .summary = "random numbers for whatever a model reads; made on the spot, needs no files",
    .open = [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      for (const RecordField& field : request.wanted) {
        user_check(
            field.dtype == DType::f32 || field.dtype == DType::i32 || field.dtype == DType::u8,
            "'{}' is {}, and random records have f32, i32 and u8", field.name,
            name_of(field.dtype));
      }
      return std::make_unique<Noise>(request.wanted, MadeCounts(request), request.seed);
    }};

}  // namespace thimble
