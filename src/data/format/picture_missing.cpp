// Stands in for picture.cpp in a build without libjpeg-turbo or libspng.
#include "base/error.h"
#include "data/format/picture.h"

namespace thimble {

void decode_picture(std::span<const std::byte>, const std::string& name, int64_t, int64_t,
                    Picture&) {
  user_error(
      "'{}' is a picture, and this build reads none; build it with libturbojpeg0-dev and "
      "libspng-dev, or have pixels in .npy files (--data npy)",
      name);
}

}  // namespace thimble
