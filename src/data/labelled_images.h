// Shared by data sets of labelled images: 'pixels', u8 [H,W,C], and 'label', a class. The mean and
// the deviation of their pixels come with them.
#pragma once

#include <string>

#include "data/dataset.h"
#include "data/order/pixel_sums.h"

namespace thimble {

inline constexpr std::string_view kPixels = "pixels";
inline constexpr std::string_view kLabel = "label";
// Per channel, in units of a pixel (0..255), and one over the deviation, which is 1 at least, so
// that a channel which hardly changes is not blown up.
inline constexpr std::string_view kPixelMean = "pixel.mean";
inline constexpr std::string_view kPixelInverseDeviation = "pixel.inverse_deviation";
std::vector<DataConstant> pixel_constants(const std::vector<float>& mean,
                                          const std::vector<float>& deviation);

class LabelledImages : public Dataset {
 public:
  const DatasetInfo& info() const final { return info_; }
  void read(Split split, int64_t index, std::span<const RecordPart> parts) const final;

 protected:
  LabelledImages(std::string name, const Shape& image, int64_t classes);

  // `image` gets H*W*C bytes, channels innermost; `label` is in [0, classes). As read() else.
  virtual void read_image(Split split, int64_t index, std::span<uint8_t> image,
                          int32_t& label) const = 0;

  void set_counts(int64_t train, int64_t test);
  void set_statistics(const std::vector<float>& mean, const std::vector<float>& deviation) {
    info_.constants = pixel_constants(mean, deviation);
  }
  // Reads every record of both splits once, so that a bad one is found before training starts, and
  // sets the statistics of the training images and both sha256. REQUIRES: set_counts() was called.
  void measure();
  // The statistics alone, of `count` training records: those that which(0), which(1), ... are.
  template <class Which>
  void measure_training(int64_t count, const Which& which) {
    PixelSums sums(image().back());
    std::vector<uint8_t> bytes(static_cast<size_t>(image().elements()));
    int32_t label = 0;
    for (int64_t i = 0; i < count; ++i) {
      read_image(Split::train, which(i), bytes, label);
      sums.add(bytes);
    }
    set_statistics(sums.means(), sums.deviations());
  }
  // Reading a record takes a while: see DatasetInfo::decoded.
  void set_decoded() { info_.decoded = true; }
  void set_sha256(std::string train, std::string test) {
    info_.train_sha256 = std::move(train);
    info_.test_sha256 = std::move(test);
  }

  const Shape& image() const { return info_.fields[0].shape; }
  int64_t classes() const { return info_.fields[1].limit; }

 private:
  DatasetInfo info_;
};

}  // namespace thimble
