#include "data/format/picture.h"

#include <spng.h>
#include <turbojpeg.h>

#include <cstring>
#include <memory>

#include "base/error.h"

namespace thimble {
namespace {

struct FreeJpeg {
  void operator()(void* handle) const { tjDestroy(handle); }
};
struct FreePng {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

[[noreturn]] void damaged(const std::string& name, const char* why) {
  user_error("the picture '{}' is damaged or truncated ({}); get a fresh copy of it, or remove it",
             name, why);
}

void make_room(const std::string& name, int64_t height, int64_t width, int64_t channels,
               Picture& out) {
  user_check(height > 0 && width > 0 && height <= kMostPixels / width,
             "the picture '{}' has {} by {} pixels; {} are the most", name, height, width,
             kMostPixels);
  out.height = height;
  out.width = width;
  out.channels = channels;
  out.pixels.resize(static_cast<size_t>(height * width * channels));
}

void decode_jpeg(std::span<const std::byte> file, const std::string& name, int64_t channels,
                 int64_t at_least, Picture& out) {
  thread_local std::unique_ptr<void, FreeJpeg> decoder;
  if (decoder == nullptr) decoder.reset(tjInitDecompress());
  if (decoder == nullptr) throw std::bad_alloc();
  // One that has failed remembers some of what it read: the next picture gets another.
  const auto fail = [&] {
    const std::string why = tjGetErrorStr2(decoder.get());
    decoder.reset();
    damaged(name, why.c_str());
  };
  const auto* const bytes = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0, height = 0, sampling = 0, space = 0;
  const bool known = tjDecompressHeader3(decoder.get(), bytes, file.size(), &width, &height,
                                         &sampling, &space) == 0;
  if (!known || width == 0) fail();
  user_check(space != TJCS_CMYK && space != TJCS_YCCK,
             "the picture '{}' is a JPEG of four inks; save it with red, green and blue", name);
  tjscalingfactor scale = {1, 1};
  for (const int part : {8, 4, 2}) {
    if (std::min(width, height) >= part * at_least) {
      scale = {1, part};
      break;
    }
  }
  const int scaled_width = TJSCALED(width, scale), scaled_height = TJSCALED(height, scale);
  make_room(name, scaled_height, scaled_width, channels, out);
  if (tjDecompress2(decoder.get(), bytes, file.size(), out.pixels.data(), scaled_width, 0,
                    scaled_height, channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
    fail();
  }
}

void decode_png(std::span<const std::byte> file, const std::string& name, int64_t channels,
                Picture& out) {
  const std::unique_ptr<spng_ctx, FreePng> context(spng_ctx_new(0));
  if (context == nullptr) throw std::bad_alloc();
  const auto check = [&](int code) {
    if (code != 0) damaged(name, spng_strerror(code));
  };
  check(spng_set_png_buffer(context.get(), file.data(), file.size()));
  spng_ihdr header = {};
  check(spng_get_ihdr(context.get(), &header));
  make_room(name, header.height, header.width, 3, out);
  check(spng_decode_image(context.get(), out.pixels.data(), out.pixels.size(), SPNG_FMT_RGB8, 0));
  if (channels == 3) return;
  for (size_t pixel = 0; pixel * 3 < out.pixels.size(); ++pixel) {  // ITU-R BT.601, as JPEG has it
    const uint8_t* rgb = out.pixels.data() + 3 * pixel;
    out.pixels[pixel] =
        static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  }
  out.channels = 1;
  out.pixels.resize(out.pixels.size() / 3);
}

bool begins_with(std::span<const std::byte> file, std::string_view magic) {
  return file.size() > magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

void decode_picture(std::span<const std::byte> file, const std::string& name, int64_t channels,
                    int64_t at_least, Picture& out) {
  user_check(!file.empty(), "the picture '{}' is empty; get a fresh copy of it, or remove it",
             name);
  if (begins_with(file, "\xff\xd8")) {
    decode_jpeg(file, name, channels, at_least, out);
  } else if (begins_with(file, "\x89PNG")) {
    decode_png(file, name, channels, out);
  } else {
    user_error("'{}' is neither a JPEG nor a PNG, whatever its name says; convert it, or remove it",
               name);
  }
}

}  // namespace thimble
