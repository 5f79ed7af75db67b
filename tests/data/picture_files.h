// Pictures for tests, encoded by the libraries themselves.
#pragma once

#include <spng.h>
#include <turbojpeg.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace thimble {

// height x width pixels of red, green and blue, all of one colour.
inline std::vector<uint8_t> plain_colour(int height, int width, uint8_t red, uint8_t green,
                                         uint8_t blue) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < height * width; ++i) pixels.insert(pixels.end(), {red, green, blue});
  return pixels;
}

inline std::string jpeg_of(const std::vector<uint8_t>& pixels, int height, int width) {
  void* const encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  tjCompress2(encoder, pixels.data(), width, 0, height, TJPF_RGB, &bytes, &size, TJSAMP_444, 95, 0);
  std::string file(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  return file;
}

inline std::string png_of(const std::vector<uint8_t>& pixels, int height, int width) {
  spng_ctx* const context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header = {};
  header.height = static_cast<uint32_t>(height);
  header.width = static_cast<uint32_t>(width);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  spng_set_ihdr(context, &header);
  spng_encode_image(context, pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  int error = 0;
  void* const bytes = spng_get_png_buffer(context, &size, &error);
  std::string file(static_cast<char*>(bytes), size);
  std::free(bytes);
  spng_ctx_free(context);
  return file;
}

}  // namespace thimble
