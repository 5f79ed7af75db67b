#include <gtest/gtest.h>

#include <cmath>

#include "../file_support.h"
#include "base/error.h"
#include "data/dataset.h"
#include "data/format/wav.h"
#include "recipe/settings.h"
#include "support/wav_file.h"

namespace thimble {
namespace {

class SpokenDigits : public testing::Test {
 protected:
  std::unique_ptr<Dataset> open(int64_t length, int64_t features, const char* frames = "samples") {
    Recipe recipe;
    configure(recipe, {{"model", "lstm"}, {"data", "spoken_digits"}, {"frames", frames}});
    return open_dataset(
        "spoken_digits",
        {.folder = folder_.path(),
         .wanted = {{.name = "sequence", .dtype = DType::f32, .shape = {length, features}}},
         .settings = recipe.data.settings});
  }
  TemporaryFolder folder_;
};

TEST_F(SpokenDigits, FramesOfEqualLoudness) {
  spill(folder_ / "3_ann_7.wav", wav({100, -100, 100, 100, 100, -100, 100}));
  spill(folder_ / "9_ann_0.wav", wav({1000, 1000, -1000, 1000, 1000, 1000, 1000, 1000, 1000}));
  spill(folder_ / "notes.txt", "not a recording");
  const auto data = open(4, 2);
  ASSERT_EQ(data->info().train_count, 1);
  ASSERT_EQ(data->info().test_count, 1);
  // As a column of a batch of two: frames apart.
  std::vector<float> batch(4 * 2 * 2, -7);
  int32_t label = -1;
  const RecordPart parts[] = {{reinterpret_cast<std::byte*>(batch.data() + 2), 8, 16, 4},
                              {reinterpret_cast<std::byte*>(&label), 4, 4, 1}};
  data->read(Split::train, 0, parts);
  EXPECT_EQ(label, 3);
  // Silence first, so that the recording ends where the frames do.
  EXPECT_EQ(batch, (std::vector<float>{-7, -7, 0, 1, -7, -7, -1, 1, -7, -7, 1, 1, -7, -7, -1, 1}));
  data->read(Split::test, 0, parts);  // longer than there is room for
  EXPECT_EQ(label, 9);
  EXPECT_EQ(batch[14], 1);
}

// A tone of three turns in 16 samples, the second half of two frames: all in the third bin, but for what
// the window lets pass beside it.
TEST_F(SpokenDigits, FramesAsSpectra) {
  std::vector<int16_t> tone;
  for (int i = 0; i < 16; ++i) {
    tone.push_back(static_cast<int16_t>(std::lround(8000 * std::cos(2 * M_PI * 3 * i / 16))));
  }
  spill(folder_ / "3_ann_7.wav", wav(tone));
  spill(folder_ / "9_ann_0.wav", wav(tone));
  const auto data = open(2, 8, "spectrum");
  std::vector<float> frames(2 * 8);
  const RecordPart parts[] = {{reinterpret_cast<std::byte*>(frames.data()), 32, 32, 2}, {}};
  data->read(Split::train, 0, parts);
  for (size_t k = 0; k < 8; ++k) {
    EXPECT_NEAR(frames[k], std::log(0.1), 1e-6) << k;  // silence
    // Half of sqrt(2), the amplitude at a mean square of one, times 16 and the window's mean of 1/2.
    const double size = k == 3             ? 16 * std::sqrt(2) / 4
                        : k == 2 || k == 4 ? 16 * std::sqrt(2) / 8
                                           : 0;
    EXPECT_NEAR(frames[8 + k], std::log(0.1 + size), 5e-3) << k;  // samples are whole numbers
  }
  EXPECT_TRUE(throws_saying<UserError>([&] { open(2, 2000, "spectrum"); }, "1024", "--features"));
}

TEST_F(SpokenDigits, FilesThatAreNone) {
  EXPECT_TRUE(throws_saying<UserError>([&] { open(4, 2); }, "no recordings", "thimble data get"));
  spill(folder_ / "3_ann_7.wav", wav({1, 2, 3}));
  EXPECT_TRUE(throws_saying<UserError>([&] { open(4, 2); }, "too few"));
  const auto refused = [&](const std::string& bytes, const char* why) {
    spill(folder_ / "4_ann_0.wav", bytes);
    EXPECT_TRUE(throws_saying<UserError>([&] { open(4, 2); }, "4_ann_0.wav", why));
  };
  refused("RIFF", "no .wav file");
  refused(wav({1, 2, 3}, 16000), "8000 16-bit samples");
  refused(wav({1, 2, 3}, 8000, 2), "one channel");
  const std::string whole = wav({1, 2, 3});
  refused(whole.substr(0, whole.size() - 1), "truncated");
  refused(whole.substr(0, 40), "no samples");
  refused(wav({}), "no samples");
}

}  // namespace
}  // namespace thimble
