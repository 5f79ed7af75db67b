// thimble predict: the class of pictures or of test records, or the token that follows a text.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/trained.h"
#include "data/format/picture.h"
#include "data/labelled_images.h"
#include "data/prepare/token_text.h"
#include "generate/classifier.h"
#include "generate/sampler.h"
#include "train/feed/feeder.h"

namespace thimble {
namespace {

struct PredictFlags : TrainedFlags {
  std::vector<std::string> pictures;
  std::vector<int64_t> records;
  std::string text;
  int top = 3;
};

// Pictures in files, each a test record without a label.
class GivenPictures final : public Dataset {
 public:
  GivenPictures(const Model& model, const std::vector<std::string>& paths) : paths_(paths) {
    info_.name = "pictures";
    info_.fields = fields_read(model);
    info_.train_count = info_.test_count = std::ssize(paths);
    const RecordField* const pixels = find_field(info_.fields, kPixels);
    user_check(pixels != nullptr && pixels->shape.rank() == 3,
               "{} reads no pictures; name test records with --record", model.options.name);
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split, int64_t index, std::span<const RecordPart> parts) const override {
    for (size_t field = 0; field < parts.size(); ++field) {
      if (parts[field].data == nullptr) continue;
      if (info_.fields[field].name != kPixels) {
        std::ranges::fill(parts[field].all<std::byte>(),
                          std::byte{0});  // a label, which nobody asks for
        continue;
      }
      constexpr Bytes kMost(int64_t{1} << 28);
      const Shape& size = info_.fields[field].shape;
      const std::string& path = paths_[static_cast<size_t>(index)];
      const std::string file = read_text(path, "a picture", kMost);
      Picture picture;
      decode_picture(std::as_bytes(std::span(file)), path, size[2], std::max(size[0], size[1]),
                     picture);
      resize_and_crop(picture, size, parts[field].all<uint8_t>());
    }
  }

 private:
  const std::vector<std::string>& paths_;
  DatasetInfo info_;
};

// Some test records of a data set.
class ChosenRecords final : public Dataset {
 public:
  ChosenRecords(const Dataset& all, const std::vector<int64_t>& records)
      : all_(all), records_(records), info_(all.info()) {
    for (const int64_t record : records) {
      user_check(record < info_.test_count, "--record {}: {} has {} test records, from 0 on",
                 record, info_.name, info_.test_count);
    }
    info_.test_count = std::ssize(records);
  }

  const DatasetInfo& info() const override { return info_; }
  int64_t length(Split split, int64_t index, size_t field) const override {
    return all_.length(split, at(index), field);
  }
  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    all_.read(split, at(index), parts);
  }

 private:
  int64_t at(int64_t index) const { return records_[static_cast<size_t>(index)]; }

  const Dataset& all_;
  const std::vector<int64_t>& records_;
  DatasetInfo info_;
};

// The likeliest, the first of equals first.
std::vector<size_t> likeliest(const std::vector<double>& probabilities, int count) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t one) { return probabilities[one]; });
  order.resize(std::min(order.size(), static_cast<size_t>(count)));
  return order;
}

int predict_classes(const PredictFlags& flags, PlannedTraining& planned, TrainedModel& trained) {
  std::unique_ptr<Dataset> source, data;
  std::vector<std::string> names = flags.pictures;
  if (flags.records.empty()) {
    data = std::make_unique<GivenPictures>(planned.full().model, flags.pictures);
  } else {
    Request request;
    request.recipe = planned.recipe;
    if (!flags.data_dir.empty()) request.recipe.data.folder = flags.data_dir;
    source = open_data(request, true);
    Feeder(*source, {}).check(planned.full().model);
    data = std::make_unique<ChosenRecords>(*source, flags.records);
    for (const int64_t record : flags.records) names.push_back(fmt::format("record {}", record));
  }
  nlohmann::json all = nlohmann::json::array();
  Classifier classifier(trained);
  classifier.classify(Feeder(*data, {}),
                      [&](int64_t record, const std::vector<double>& probabilities) {
                        const std::string& name = names[static_cast<size_t>(record)];
                        nlohmann::json top = nlohmann::json::array();
                        std::string line;
                        for (const size_t one : likeliest(probabilities, flags.top)) {
                          top.push_back({{"class", one}, {"probability", probabilities[one]}});
                          line += fmt::format("  class {} {:6.2f}%", one, 100 * probabilities[one]);
                        }
                        if (!flags.json) print("{}:{}\n", name, line);
                        all.push_back({{"input", name}, {"classes", top}});
                      });
  if (flags.json) print_json({{"predictions", all}});
  return kOk;
}

int predict_tokens(const PredictFlags& flags, const std::string& checkpoint, const Recipe& recipe) {
  auto planned = plan_text_or_explain(recipe, {}, flags.json);
  if (!planned) return kInfeasible;
  Sampler sampler(*std::move(planned));
  say_note(flags.weights, sampler.load({checkpoint, flags.weights}));
  const std::string folder = flags.data_dir.empty() ? recipe.data.folder : flags.data_dir;
  const std::unique_ptr<TokenText> text = TokenText::read(folder);
  check_vocabulary(checkpoint, vocabulary_digest(folder), folder);
  const std::vector<double> probabilities =
      probabilities_of(sampler.next(text->encode(flags.text)));
  nlohmann::json top = nlohmann::json::array();
  for (const size_t one : likeliest(probabilities, flags.top)) {
    const std::string said = text->decode(std::vector{static_cast<int32_t>(one)});
    top.push_back({{"token", one}, {"text", said}, {"probability", probabilities[one]}});
    if (!flags.json) {
      print("{:6.2f}%  {}\n", 100 * probabilities[one], nlohmann::json(said).dump());
    }
  }
  if (flags.json) print_json({{"input", flags.text}, {"tokens", top}});
  return kOk;
}

int run(const PredictFlags& flags) {
  const int kinds = static_cast<int>(!flags.pictures.empty()) +
                    static_cast<int>(!flags.records.empty()) +
                    static_cast<int>(!flags.text.empty());
  user_check(kinds == 1,
             "say one kind of input: pictures (`thimble predict {0} a.png`), --record N of the "
             "test records, or --text TEXT",
             flags.run);
  const std::string checkpoint = checkpoint_in(flags.run);
  Recipe recipe = flags.recipe_of(checkpoint);
  recipe.ranks = {};
  if (!flags.text.empty()) return predict_tokens(flags, checkpoint, recipe);
  auto planned = plan_or_explain(recipe, flags.json);
  if (!planned) return kInfeasible;
  TrainedModel trained(*planned);
  say_note(flags.weights, trained.load({checkpoint, flags.weights}));
  return predict_classes(flags, *planned, trained);
}

}  // namespace

Command add_predict(CLI::App& app) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* command =
      app.add_subcommand("predict", "The class of pictures or records, by a trained model");
  add_argument(*command, "run", flags->run,
               "Folder of the run (--out of `thimble train`), or a checkpoint");
  command->add_option("pictures", flags->pictures, "JPEG or PNG files")->type_name("");
  add_value(*command, "--record", flags->records, "N,M,...",
            "Test records of the run's data, by their numbers from 0 on")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  add_value(*command, "--text", flags->text, "TEXT", "Of a language model: what follows this text");
  add_whole(*command, "--top", flags->top, 1, 1'000'000, "How many of the likeliest (3)");
  add_value(*command, "--weights", flags->weights, "FILE",
            "Other weights than the checkpoint's (safetensors)");
  flags->add_to(*command, "Folder of the data or the vocabulary (the run's)");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
