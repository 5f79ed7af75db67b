#include "data/format/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "data/format/gunzip.h"

namespace thimble {
namespace {

struct IdxHeader {
  std::array<int64_t, 3> extents = {1, 1, 1};
  int64_t header_bytes = 0;
  int64_t file_bytes = 0;  // what the whole file must have
};

constexpr size_t header_bytes(int rank) { return 4 + 4 * static_cast<size_t>(rank); }

int64_t big_endian(std::span<const std::byte> bytes) {
  int64_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value * 256 + std::to_integer<int64_t>(byte);
  return value;
}

// `prefix` is the file's beginning, header_bytes(rank) long unless the file is shorter.
IdxHeader parse_header(std::span<const std::byte> prefix, int rank, const std::string& path) {
  user_check(prefix.size() == header_bytes(rank),
             "'{}' is truncated: its {} bytes are shorter than an IDX header; get a fresh copy of "
             "it",
             path, prefix.size());
  const int64_t magic = big_endian(prefix);
  user_check(magic == 0x0800 + rank,
             "'{}' is not an IDX file of {}: it starts with {:#010x}, not {:#010x}; check that the "
             "files are not swapped or still packed, or get a fresh copy",
             path, rank == 3 ? "images" : "labels", magic, 0x0800 + rank);
  IdxHeader header;
  header.header_bytes = std::ssize(prefix);
  int64_t data = 1;
  bool possible = true;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t extent = big_endian(prefix.subspan(header_bytes(axis)));
    header.extents[static_cast<size_t>(axis)] = extent;
    possible = possible && extent > 0 && !__builtin_mul_overflow(data, extent, &data);
  }
  possible = possible && !__builtin_add_overflow(data, header.header_bytes, &header.file_bytes);
  const std::span<const int64_t> extents(header.extents);
  user_check(possible, "'{}' claims the impossible extents [{}]; get a fresh copy of it", path,
             fmt::join(extents.first(static_cast<size_t>(rank)), ","));
  return header;
}

// The first of the accepted spellings that exists, unpacked when it needs to be.
std::pair<ReadFile, IdxHeader> open_file(const std::string& folder, const std::string& stem,
                                         int rank) {
  const std::string suffix = fmt::format("idx{}-ubyte", rank);
  for (const char* joint : {"-", "."}) {
    for (const char* packing : {"", ".gz"}) {
      const std::string path = fmt::format("{}/{}{}{}{}", folder, stem, joint, suffix, packing);
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(path, ignored)) continue;
      ReadFile file(path);
      if (*packing != '\0') {
        file = gunzip(file, header_bytes(rank), [&](std::span<const std::byte> prefix) {
          return parse_header(prefix, rank, path).file_bytes;
        });
      }
      std::array<std::byte, header_bytes(3)> bytes{};
      const auto prefix =
          std::span(bytes).first(std::min(header_bytes(rank), static_cast<size_t>(file.size())));
      file.read_at(0, prefix);
      const IdxHeader header = parse_header(prefix, rank, path);
      user_check(file.size() == header.file_bytes,
                 "'{}' is {}: it has {} bytes where its header wants {}; get a fresh copy of it",
                 path, file.size() < header.file_bytes ? "truncated" : "oversized", file.size(),
                 header.file_bytes);
      return {std::move(file), header};
    }
  }
  user_error("the folder '{}' has no {}-{} (nor {}.{}, nor either with .gz); check the folder",
             folder, stem, suffix, stem, suffix);
}

struct Part {
  ReadFile images;
  ReadFile labels;
  int64_t count = 0, rows = 0, columns = 0;
};

Part open_part(const std::string& folder, const std::string& stem) {
  auto [images, image_header] = open_file(folder, stem + "-images", 3);
  auto [labels, label_header] = open_file(folder, stem + "-labels", 1);
  user_check(image_header.extents[0] == label_header.extents[0],
             "'{}' has {} images but '{}' has {} labels; get both files from the same source",
             images.path(), image_header.extents[0], labels.path(), label_header.extents[0]);
  return {std::move(images), std::move(labels), image_header.extents[0], image_header.extents[1],
          image_header.extents[2]};
}

class Idx final : public LabelledImages {
 public:
  Idx(Part train, Part test, std::string name, int64_t classes)
      : LabelledImages(std::move(name), {train.rows, train.columns, 1}, classes),
        train_(std::move(train)),
        test_(std::move(test)) {
    user_check(train_.rows == test_.rows && train_.columns == test_.columns,
               "'{}' has images of {}x{} but '{}' of {}x{}; get both files from the same source",
               train_.images.path(), train_.rows, train_.columns, test_.images.path(), test_.rows,
               test_.columns);
    set_counts(train_.count, test_.count);
    measure();
  }

 private:
  void read_image(Split split, int64_t index, std::span<uint8_t> image,
                  int32_t& label) const override {
    const Part& part = split == Split::train ? train_ : test_;
    part.images.read_at(static_cast<int64_t>(header_bytes(3)) + index * std::ssize(image),
                        std::as_writable_bytes(image));
    std::byte stored{};
    part.labels.read_at(static_cast<int64_t>(header_bytes(1)) + index, std::span(&stored, 1));
    label = std::to_integer<int32_t>(stored);
    user_check(
        label < classes(),
        "'{}' has the label {} in record {} where the classes end at {}; get a fresh copy of "
        "it, or say how many classes it has",
        part.labels.path(), label, index, classes() - 1);
  }

  Part train_;
  Part test_;
};

}  // namespace

std::unique_ptr<Dataset> open_idx(const std::string& folder, std::string name, int64_t classes) {
  Part train = open_part(folder, "train");
  return std::make_unique<Idx>(std::move(train), open_part(folder, "t10k"), std::move(name),
                               classes);
}

}  // namespace thimble
