// Pictures in folders and in tar archives.
#include "../file_support.h"
#include "base/error.h"
#include "data/dataset.h"
#include "data/format/picture.h"
#include "data/format/tar.h"
#include "data/picture_files.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

std::string coloured(int which, int height = 20, int width = 30) {
  const auto tint = static_cast<uint8_t>(20 * which);
  const auto pixels = plain_colour(height, width, tint, 100, static_cast<uint8_t>(200 - tint));
  return which % 2 == 0 ? jpeg_of(pixels, height, width) : png_of(pixels, height, width);
}

const DataRequest kSmall = {.wanted = {{.name = "pixels", .dtype = DType::u8, .shape = {8, 8, 3}},
                                       {.name = "label", .dtype = DType::i32, .limit = 2}}};

DataRequest in(const TemporaryFolder& folder) {
  DataRequest request = kSmall;
  request.folder = folder.path();
  return request;
}

struct Record {
  std::vector<uint8_t> pixels = std::vector<uint8_t>(8 * 8 * 3);
  int32_t label = -1;

  bool operator==(const Record&) const = default;
};

Record read(const Dataset& data, Split split, int64_t index) {
  Record record;
  const RecordPart parts[2] = {{reinterpret_cast<std::byte*>(record.pixels.data()), 24, 24, 8},
                               {reinterpret_cast<std::byte*>(&record.label), 4, 4, 1}};
  data.read(split, index, parts);
  return record;
}

void write_class(const std::string& folder, int count, int first) {
  fs::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    spill(fmt::format("{}/{:02}.{}", folder, i, (first + i) % 2 == 0 ? "jpg" : "PNG"),
          coloured(first + i));
  }
}

TEST(Pictures, AreDecodedToTheirPixels) {
  Picture picture;
  const std::string png = coloured(3), jpeg = coloured(4);
  decode_picture(std::as_bytes(std::span(png)), "a.png", 3, 8, picture);
  EXPECT_EQ(picture.height, 20);
  EXPECT_EQ(picture.width, 30);
  EXPECT_EQ(picture.pixels, plain_colour(20, 30, 60, 100, 140));
  decode_picture(std::as_bytes(std::span(jpeg)), "a.jpg", 3, 20, picture);
  ASSERT_EQ(picture.pixels.size(), 20u * 30 * 3);
  for (size_t i = 0; i < picture.pixels.size(); ++i) {  // JPEG keeps colours, but for rounding
    EXPECT_NEAR(picture.pixels[i], (std::array{80, 100, 120})[i % 3], 2);
  }
  // Red, green and blue weigh 0.299, 0.587 and 0.114.
  decode_picture(std::as_bytes(std::span(png)), "a.png", 1, 8, picture);
  EXPECT_EQ(picture.pixels, std::vector<uint8_t>(20 * 30, 93));
}

TEST(Pictures, LargeOnesAreDecodedSmaller) {
  Picture picture;
  const std::string jpeg = jpeg_of(plain_colour(64, 96, 10, 20, 30), 64, 96);
  decode_picture(std::as_bytes(std::span(jpeg)), "a.jpg", 3, 16, picture);
  EXPECT_EQ(picture.height, 16);
  EXPECT_EQ(picture.width, 24);
}

TEST(Pictures, TheMiddleIsResized) {
  // Twice as wide as high, left dark and right bright: the middle half has both, side by side.
  Picture picture = {.height = 4, .width = 8, .channels = 1, .pixels = {}};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) picture.pixels.push_back(x < 4 ? 10 : 210);
  }
  std::vector<uint8_t> out(4);
  resize_and_crop(picture, {2, 2, 1}, out);
  EXPECT_LT(out[0], 60);
  EXPECT_GT(out[1], 160);
  EXPECT_EQ(out[0], out[2]);
  EXPECT_EQ(out[0] + out[1], 220);
  std::vector<uint8_t> same(16);
  resize_and_crop({.height = 4, .width = 4, .channels = 1, .pixels = std::vector<uint8_t>(16, 77)},
                  {4, 4, 1}, same);
  EXPECT_EQ(same, std::vector<uint8_t>(16, 77));
}

TEST(Pictures, DamagedOnesAreNamed) {
  Picture picture;
  const auto refuses = [&](const std::string& file, auto... words) {
    return throws_saying<UserError>(
        [&] { decode_picture(std::as_bytes(std::span(file)), "x/y.jpg", 3, 8, picture); },
        "'x/y.jpg'", words...);
  };
  const std::string jpeg = coloured(2), png = coloured(3);
  EXPECT_TRUE(refuses(jpeg.substr(0, jpeg.size() / 2), "damaged or truncated"));
  EXPECT_TRUE(refuses(png.substr(0, png.size() / 2), "damaged or truncated"));
  EXPECT_TRUE(refuses("GIF89a and more", "neither a JPEG nor a PNG"));
  EXPECT_TRUE(refuses("", "empty"));
  // The pictures after a bad one are none the worse for it.
  EXPECT_TRUE(refuses(jpeg.substr(0, jpeg.size() / 2), "damaged or truncated"));
  decode_picture(std::as_bytes(std::span(jpeg)), "x/y.jpg", 3, 20, picture);
  EXPECT_EQ(picture.height, 20);
}

TEST(ImageFolders, HaveAClassForEachFolder) {
  const TemporaryFolder folder;
  write_class(folder / "train/dog", 3, 0);
  write_class(folder / "train/cat", 2, 4);
  write_class(folder / "val/cat", 1, 6);
  write_class(folder / "val/dog", 1, 7);
  spill(folder / "train/dog/notes.txt", "none of them");
  const auto data = open_dataset("images", in(folder));
  EXPECT_EQ(data->info().train_count, 5);
  EXPECT_EQ(data->info().test_count, 2);
  EXPECT_EQ(data->info().field("label").limit, 2);
  EXPECT_TRUE(data->info().decoded);
  EXPECT_EQ(read(*data, Split::train, 0).label, 0);  // cats
  EXPECT_EQ(read(*data, Split::train, 2).label, 1);
  const Record dog = read(*data, Split::test, 1);
  EXPECT_EQ(dog.label, 1);
  for (size_t i = 0; i < dog.pixels.size(); ++i) {
    EXPECT_NEAR(dog.pixels[i], (std::array{140, 100, 60})[i % 3], 1);
  }
  EXPECT_EQ(data->info().constant("pixel.mean").size(), 3u);
}

TEST(ImageFolders, WithoutTestsAreCut) {
  const TemporaryFolder folder;
  write_class(folder / "a", 11, 0);
  write_class(folder / "b", 10, 0);
  const auto data = open_dataset("images", in(folder));
  EXPECT_EQ(data->info().train_count, 19);
  EXPECT_EQ(data->info().test_count, 2);
}

TEST(ImageFolders, BadOnesAreOneSentence) {
  const auto refuses = [](const TemporaryFolder& folder, auto... words) {
    return throws_saying<UserError>([&] { open_dataset("images", in(folder)); }, words...);
  };
  const TemporaryFolder empty;
  EXPECT_TRUE(refuses(empty, "has 0 folders of pictures"));
  const TemporaryFolder folder;
  write_class(folder / "train/a", 2, 0);
  fs::create_directories(folder / "train/b");
  EXPECT_TRUE(refuses(folder, "train/b' has no pictures"));
  write_class(folder / "train/b", 2, 2);
  write_class(folder / "val/a", 1, 0);
  write_class(folder / "val/c", 1, 0);
  EXPECT_TRUE(refuses(folder, "val/c' is a class that", "does not have"));
  fs::remove_all(folder / "val");
  spill(folder / "train/a/01.PNG", coloured(3).substr(0, 60));
  EXPECT_TRUE(refuses(folder, "train/a/01.PNG' is damaged or truncated"));
  spill(folder / "train/a/01.PNG", "");
  EXPECT_TRUE(refuses(folder, "train/a/01.PNG' is empty"));
}

// A header of a regular file, and its bytes in blocks of 512.
std::string tar_entry(const std::string& name, const std::string& content, char kind = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, fmt::format("{:011o}", content.size()));
  header[156] = kind;
  header.replace(257, 5, "ustar");
  header.replace(148, 8, "        ");
  int sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512);
  return header + padded;
}

std::string shard(int first, int count) {
  std::string tar;
  for (int i = first; i < first + count; ++i) {
    tar += tar_entry(fmt::format("some/{:04}.cls", i), fmt::format("{}\n", i % 3));
    tar += tar_entry(fmt::format("some/{:04}.{}", i, i % 2 == 0 ? "jpg" : "png"), coloured(i));
  }
  return tar + std::string(1024, '\0');
}

TEST(WebDataset, IsReadWhereItLies) {
  const TemporaryFolder folder;
  spill(folder / "train-0000.tar", shard(0, 3));
  spill(folder / "train-0001.tar", shard(3, 2));
  spill(folder / "val-0000.tar", shard(5, 2));
  const auto data = open_dataset("webdataset", in(folder));
  EXPECT_EQ(data->info().train_count, 5);
  EXPECT_EQ(data->info().test_count, 2);
  EXPECT_EQ(data->info().field("label").limit, 3);
  EXPECT_EQ(read(*data, Split::train, 4).label, 1);
  EXPECT_EQ(read(*data, Split::test, 0).label, 2);
  EXPECT_NEAR(read(*data, Split::test, 0).pixels[0], 100, 1);
}

TEST(WebDataset, LongNamesAreRead) {
  const TemporaryFolder folder;
  const std::string name = fmt::format("{}/1.cls", std::string(150, 'x'));
  const std::string path = "path=" + name;
  // "LENGTH path=NAME\n", the length counting itself.
  const std::string record = fmt::format("{} {}\n", path.size() + 5, path);
  spill(folder / "a.tar", tar_entry("././@LongLink", name + '\0', 'L') + tar_entry("cut", "7") +
                              tar_entry("pax", record, 'x') + tar_entry("cut", "8"));
  std::vector<std::string> names;
  for_each_in_tar(ReadFile(folder / "a.tar"),
                  [&](const TarEntry& entry) { names.push_back(entry.name); });
  EXPECT_EQ(names, (std::vector<std::string>{name, name}));
}

TEST(WebDataset, BadArchivesAreOneSentence) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& content, auto... words) {
    spill(folder / "train.tar", content);
    return throws_saying<UserError>([&] { open_dataset("webdataset", in(folder)); }, words...);
  };
  EXPECT_TRUE(throws_saying<UserError>([&] { open_dataset("webdataset", in(folder)); },
                                       "no archives (.tar)"));
  const std::string good = shard(0, 30);
  EXPECT_TRUE(refuses(good.substr(0, good.size() - 1024 - 502), "truncated", "train.tar"));
  EXPECT_TRUE(refuses("not a tar archive" + std::string(1000, 'x'), "no tar archive"));
  EXPECT_TRUE(refuses(tar_entry("a.jpg", coloured(0)), "'a' in the archive", "has no class"));
  EXPECT_TRUE(refuses(tar_entry("a.jpg", coloured(0)) + tar_entry("a.cls", "cat"),
                      "'a.cls' in the archive", "is no class"));
}

}  // namespace
}  // namespace thimble
