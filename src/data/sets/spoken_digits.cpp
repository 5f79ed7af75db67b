// The Free Spoken Digit Dataset: recordings of single digits, DIGIT_SPEAKER_INDEX.wav, 8,000 samples a
// second. A record is the recording cut into frames of as many samples as the model reads at a time, its
// loudness made equal; what is longer than the model is cut off, what is shorter ends in silence. Of
// every digit of every speaker, the recordings 0 to 4 are for testing.
//
// The files are many and small: opening the set puts their samples, one recording behind the other, into a
// nameless file on disk.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/dataset.h"
#include "data/wav.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

constexpr int kDigits = 10;
constexpr int kRate = 8000;
constexpr int kTested = 5;  // recordings of a digit and speaker

struct Recording {
  int64_t begin = 0;  // sample
  int64_t samples = 0;
  float scale = 1;  // to a mean square of one
  int32_t digit = 0;
};

// "7_jackson_32.wav": 7 and 32.
bool parse_name(const std::string& name, int32_t& digit, int& index) {
  const size_t bar = name.rfind('_');
  if (!name.ends_with(".wav") || name.size() < 8 || name[1] != '_' || bar == 1 ||
      bar == std::string::npos) {
    return false;
  }
  digit = name[0] - '0';
  const char* end = name.data() + name.size() - 4;
  const auto [stop, error] = std::from_chars(name.data() + bar + 1, end, index);
  return digit >= 0 && digit < kDigits && error == std::errc() && stop == end;
}

std::vector<std::string> recordings_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    int32_t digit = 0;
    int index = 0;
    std::string name = entry->path().filename().string();
    if (parse_name(name, digit, index)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

// The folder itself, or the one inside it that has them.
std::string folder_of_recordings(const std::string& folder) {
  for (const char* inner : {"", "/recordings", "/free-spoken-digit-dataset-master/recordings",
                            "/free-spoken-digit-dataset-1.0.10/recordings"}) {
    if (!recordings_in(folder + inner).empty()) return folder + inner;
  }
  user_error(
      "there are no recordings (7_jackson_32.wav) in '{}'; get them with `thimble data get "
      "spoken_digits`",
      folder);
}

class SpokenDigits final : public Dataset {
 public:
  SpokenDigits(const std::string& given, int64_t length, int64_t features)
      : samples_(read_all(folder_of_recordings(given))) {
    user_check(!train_.empty() && !test_.empty(),
               "the recordings in '{}' are too few: some with an index below {} (for testing) and "
               "some above are wanted",
               given, kTested);
    info_ = {.name = "spoken_digits",
             .train_count = std::ssize(train_),
             .test_count = std::ssize(test_),
             .fields = {{.name = "sequence",
                         .dtype = DType::f32,
                         .shape = {length, features},
                         .strided = true},
                        {.name = "label", .dtype = DType::i32, .limit = kDigits, .pad = -1}},
             .train_sha256 = hash_.hex()};
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const Recording& recording =
        (split == Split::train ? train_ : test_)[static_cast<size_t>(index)];
    if (parts[1].data != nullptr) parts[1].all<int32_t>()[0] = recording.digit;
    if (parts[0].data == nullptr) return;
    int64_t sample = 0;
    for (int64_t frame = 0; frame < parts[0].entries; ++frame) {
      const std::span<float> out = parts[0].at<float>(frame);
      std::array<int16_t, 256> block;
      for (size_t at = 0; at < out.size(); at += block.size()) {
        const std::span<float> part = out.subspan(at, std::min(block.size(), out.size() - at));
        const int64_t there = std::clamp<int64_t>(recording.samples - sample, 0, std::ssize(part));
        const std::span<int16_t> read(block.data(), static_cast<size_t>(there));
        if (there > 0) {
          samples_.read_at(2 * (recording.begin + sample), std::as_writable_bytes(read));
        }
        for (size_t i = 0; i < part.size(); ++i) {
          part[i] = i < read.size() ? static_cast<float>(read[i]) * recording.scale : 0;
        }
        sample += std::ssize(part);
      }
    }
  }

 private:
  ReadFile read_all(const std::string& folder) {
    SpoolFile spool("recordings of '" + folder + "'");
    int64_t begin = 0;
    for (const std::string& name : recordings_in(folder)) {
      const std::vector<int16_t> samples = read_wav(folder + "/" + name, kRate);
      double squares = 0;
      for (const int16_t sample : samples) squares += static_cast<double>(sample) * sample;
      const double mean = std::sqrt(squares / static_cast<double>(samples.size()));
      Recording recording = {begin, std::ssize(samples),
                             static_cast<float>(1 / std::max(mean, 1.0))};
      int index = 0;
      parse_name(name, recording.digit, index);
      (index < kTested ? test_ : train_).push_back(recording);
      spool.write(std::as_bytes(std::span(samples)));
      hash_.update(std::as_bytes(std::span(samples)));
      hash_.update(std::as_bytes(std::span(&recording.digit, 1)));
      begin += recording.samples;
    }
    return std::move(spool).finish();
  }

  std::vector<Recording> train_, test_;
  Sha256 hash_;
  ReadFile samples_;  // behind what reading them fills in
  DatasetInfo info_;
};

std::unique_ptr<Dataset> open(const DataRequest& request) {
  const RecordField* wanted = find_field(request.wanted, "sequence");
  const bool sized = wanted != nullptr && wanted->shape.rank() == 2;
  return std::make_unique<SpokenDigits>(request.folder, sized ? wanted->shape[0] : 64,
                                        sized ? wanted->shape[1] : 50);
}

}  // namespace

extern const DatasetDef data_spoken_digits;
const DatasetDef data_spoken_digits{
    "spoken_digits", "3,000 recordings of spoken digits as raw audio, 10 classes (--data-dir)",
    open, "get them with `thimble data get spoken_digits` and name the folder"};

}  // namespace thimble
