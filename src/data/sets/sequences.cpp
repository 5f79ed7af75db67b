// Sequences of the length, width and classes that the model wants, made on the spot; others with
// every seed. A model that predicts 'targets' finds the label at every time step.
#include <algorithm>

#include "base/error.h"
#include "base/field.h"
#include "data/generated.h"

namespace thimble {
namespace {

constexpr std::string_view kSequence = "sequence";
constexpr std::string_view kLabel = "label";
constexpr std::string_view kTargets = "targets";

struct Own {
  int64_t records = 6400;  // of an epoch; a tenth as many are tested on
};

void fields(OwnSettings& own, Fields& list) {
  list.whole("sequences", own.of<Own>().records, {.least = 1, .most = INT32_MAX},
             {.help = "Generated sequences of an epoch",
              .more = "`lstm`: generated sequences of an epoch; a tenth as many are tested on",
              .affects = affects::numerics,
              .training = true});
}

class Sequences final : public Dataset {
 public:
  Sequences(const SequenceSpec& spec, bool targets, int64_t train_count, int64_t test_count,
            uint64_t seed)
      : spec_(spec), seed_(seed) {
    user_check(spec.length >= 1 && spec.features >= 1 && spec.classes >= 1 &&
                   spec.classes <= INT32_MAX && train_count >= 1 && test_count >= 1,
               "generated sequences need a length, features, classes and records of each split, "
               "not {} time steps of {} features, {} classes, {} and {} records",
               spec.length, spec.features, spec.classes, train_count, test_count);
    info_ = {
        .name = "sequences",
        .train_count = train_count,
        .test_count = test_count,
        .fields = {
            {.name = std::string(kSequence),
             .dtype = DType::f32,
             .shape = {spec.length, spec.features},
             .strided = true},
            {.name = std::string(kLabel), .dtype = DType::i32, .limit = spec.classes, .pad = -1}}};
    if (!targets) return;
    info_.fields.push_back({.name = std::string(kTargets),
                            .dtype = DType::i32,
                            .shape = {spec.length},
                            .limit = spec.classes,
                            .pad = -1});
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const RecordPart& sequence = parts[0];
    const int64_t stride = sequence.stride / static_cast<int64_t>(sizeof(float));
    const std::span<float> out(
        sequence.at<float>(0).data(),
        static_cast<size_t>((sequence.entries - 1) * stride + spec_.features));
    int32_t label = 0;
    generated_sequence(spec_, seed_, split, index, out, stride, label);
    if (parts[1].data != nullptr) parts[1].all<int32_t>()[0] = label;
    if (parts.size() > 2 && parts[2].data != nullptr) {
      std::ranges::fill(parts[2].all<int32_t>(), label);
    }
  }

 private:
  const SequenceSpec spec_;
  const uint64_t seed_;
  DatasetInfo info_;
};

std::unique_ptr<Dataset> open(const DataRequest& request) {
  SequenceSpec spec = {.length = 64, .features = 50, .classes = 10};
  if (const RecordField* sequence = find_field(request.wanted, kSequence)) {
    spec.length = sequence->shape[0];
    spec.features = sequence->shape[1];
  }
  const RecordField* const targets = find_field(request.wanted, kTargets);
  if (const RecordField* label = find_field(request.wanted, kLabel)) spec.classes = label->limit;
  if (targets != nullptr) spec.classes = targets->limit;
  const int64_t records = request.own_of<Own>("sequences").records;
  return std::make_unique<Sequences>(
      spec, targets != nullptr, request.train_count.value_or(records),
      request.test_count.value_or(std::max<int64_t>(1, records / 10)), request.seed);
}

}  // namespace

extern const DatasetDef data_sequences{
    .name = "sequences",
    .summary = "made on the spot, in the length and classes the model wants; needs no files",
    .open = open,
    .fields = fields};

}  // namespace thimble
