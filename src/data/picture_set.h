// Shared by data sets of pictures in files: where each lies, which class it is, and how its pixels
// come to be those of a record. Nothing is resident but the list of places.
#pragma once

#include <string>
#include <vector>

#include "data/labelled_images.h"

namespace thimble {

class PictureSet : public LabelledImages {
 protected:
  // `request` says the size that the model reads; without, 224x224 in colour.
  PictureSet(std::string name, const DataRequest& request, int64_t classes);

  // All bytes of the picture's file, in `room` where they are not somewhere else already.
  virtual std::span<const std::byte> file_of(Split split, int64_t index,
                                             std::vector<std::byte>& room) const = 0;
  // For messages.
  virtual std::string name_of_picture(Split split, int64_t index) const = 0;
  virtual int32_t label_of(Split split, int64_t index) const = 0;

  // The statistics of some training pictures, spread over all of them. REQUIRES: set_counts().
  void measure_some();

 private:
  void read_image(Split split, int64_t index, std::span<uint8_t> image, int32_t& label) const final;
};

// Of a set without records to test on: every tenth is one, by its place.
constexpr bool is_for_testing(int64_t place) { return place % 10 == 9; }

}  // namespace thimble
