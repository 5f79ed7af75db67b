#include "train/time_step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/number/philox.h"
#include "train/feed/feeder.h"
#include "train/training_step.h"
#include "weights/initialize.h"

namespace thimble {
namespace {

// Records of what a model reads, all of them the same random numbers.
class Noise final : public Dataset {
 public:
  explicit Noise(const Model& model) {
    info_ = {.name = "noise", .train_count = int64_t{1} << 40, .fields = fields_read(model)};
    for (RecordField& field : info_.fields) {
      const bool number = field.dtype == DType::i32 && field.shape.rank() == 0;
      counts_.push_back(number && field.limit == 0);
      field.limit = 1;                          // whole numbers are 0
      field.variable = field.shape.rank() > 0;  // shorter variants read of them what they can
      std::vector<std::byte>& record = records_.emplace_back(
          static_cast<size_t>(TensorType{field.shape, field.dtype}.bytes().count));
      if (field.dtype == DType::u8) {
        for (std::byte& one : record) one = std::byte(next() & 255);
      } else if (is_floating(field.dtype)) {
        with_float_type(field.dtype, [&]<class T>(TypeTag<T>) {
          const auto size = record.size() / sizeof(T);
          for (T& one : std::span(reinterpret_cast<T*>(record.data()), size)) {
            one = static_cast<T>(2 * uniform_from(next()) - 1);
          }
        });
      }
    }
    for (const ValueId value : model.from_data) {
      const Value& constant = model.graph[value];
      const auto size = static_cast<size_t>(constant.type.elements());
      info_.constants.push_back({constant.name, std::vector<float>(size)});
    }
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split, int64_t, std::span<const RecordPart> parts) const override {
    for (size_t f = 0; f < parts.size(); ++f) {
      const auto entry = static_cast<size_t>(parts[f].entry);
      for (int64_t i = 0; i < parts[f].entries; ++i) {
        std::memcpy(parts[f].at<std::byte>(i).data(),
                    records_[f].data() + static_cast<size_t>(i) * entry, entry);
      }
    }
    int64_t longest = 0;
    for (const RecordPart& part : parts) longest = std::max(longest, part.entries);
    for (size_t f = 0; f < parts.size(); ++f) {
      if (counts_[f] && parts[f].data != nullptr) {
        parts[f].all<int32_t>()[0] = static_cast<int32_t>(longest);
      }
    }
  }

 private:
  uint32_t next() {
    if (word_ == 4) {
      words_ = philox({counter_++, 0, 0, 0}, philox_key(1));
      word_ = 0;
    }
    return words_[word_++];
  }

  DatasetInfo info_;
  std::vector<bool> counts_;  // by field: numbers without a limit say how long others are
  std::vector<std::vector<std::byte>> records_;  // by field
  uint32_t counter_ = 0;
  size_t word_ = 4;
  std::array<uint32_t, 4> words_{};
};

}  // namespace

double seconds_of_step(const PlannedTraining& planned) {
  constexpr int kWarm = 3, kTimed = 7;  // the second is recorded
  const Noise noise(planned.full().model);
  const Feeder feeder(noise, {});
  const std::unique_ptr<Memory> arena = planned.backend().allocate(planned.plan().arena);
  TrainingStep step(planned, feeder, *arena, 1);
  initialize(step.program(), 1);
  std::vector<double> seconds;
  for (int i = 0; i < kWarm + kTimed; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step.run(i, 0);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i >= kWarm) seconds.push_back(taken.count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + kTimed / 2);
  return seconds[kTimed / 2];
}

}  // namespace thimble
